"""Backend plugin: trials on this machine, in a workspace of their own; and what other backends may build on.

Other backends use the names of this package only, not those of its modules. Each is imported when it is first used.

| names | what they are for |
|---|---|
| `LocalBackend` | base of a backend whose trials have workspaces as here, but whose processes are started otherwise |
| `LocalArgs`, `BackendArgs` | its arguments, to be extended, and what arguments of any backend are |
| `Size`, `Memory`, `ProcessCount` | byte sizes such as `512m`, and limits of what programs may use |
| `RunResources`, `temporary_directory` | what the trials of a run share: caches, limits, the guardian |
| `Trial`, `LocalOutcome` | one trial from an empty workspace to its outcome |
| `Place`, `TrialDirectories`, `fresh_directory` | which trial it is, and where |
| `Runners`, `TrialRunner` | who starts the processes of its parts |
| `keeps_home`, `command_environment` | what the executor asks for; the environment of set-up commands and graders |
| `GRADER_INPUT`, `withheld_variables` | what graders are told, and what they do not get of the environment |
| `proxy_variables` | what agents without the network of this machine do not get of it |
| `project_places`, `run_places`, `home_places`, `shows_any` | places that agents must not see |
| `host_paths`, `own_installation`, `servers_shown` | places that they need all the same |
| `model_relays`, `ModelRelays`, `Forward` | the way of an agent without network to its model, and to nothing else |
| `forwarder_command`, `FORWARDERS`, `ForwarderKind` | its end where the agent runs, by Python, Node or socat |
| `forwarder_source`, `forwarder_words` | the same for a launcher that brings its own Python |
| `SetupError`, `remove_tree` | why a trial could not be prepared; removing what agents have made unremovable |
"""

from __future__ import annotations

from vally import lazy_names

_NAMES = {
    "vally_backend_local.backend": "LocalBackend",
    "vally_backend_local.config": "BackendArgs LocalArgs Memory ProcessCount Size",
    "vally_backend_local.confining": (
        "GRADER_INPUT home_places host_paths own_installation project_places run_places servers_shown shows_any "
        "proxy_variables withheld_variables"
    ),
    "vally_backend_local.copying": "remove_tree",
    "vally_backend_local.directories": "TrialDirectories fresh_directory",
    "vally_backend_local.failures": "SetupError",
    "vally_backend_local.outcome": "LocalOutcome",
    "vally_backend_local.preparing": "Place Runners keeps_home",
    "vally_backend_local.relay.forwarding": (
        "FORWARDERS ForwarderKind forwarder_command forwarder_source forwarder_words"
    ),
    "vally_backend_local.relay.relays": "Forward ModelRelays model_relays",
    "vally_backend_local.runner": "TrialRunner",
    "vally_backend_local.setup_commands": "command_environment",
    "vally_backend_local.shared": "RunResources temporary_directory",
    "vally_backend_local.trial": "Trial",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, globals(), _NAMES)
