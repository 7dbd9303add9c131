"""What git commands see when workspaces are prepared.

Everything but talking to a remote runs without any configuration of the user or the system, so that no hook, filter or
alias of theirs runs. Talking to a remote needs credentials, proxies and keys, so there the user's configuration counts,
but hooks, helpers outside of the usual protocols and questions at the terminal do not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

REMOTE = "vally-source"
PROTOCOLS = "file:git:http:https:ssh"

_LOCATIONS = re.compile(
    r"GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|INDEX_VERSION|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE"
    r"|PREFIX|GRAFT_FILE|SHALLOW_FILE|REPLACE_REF_BASE|CEILING_DIRECTORIES|TEMPLATE_DIR|DEFAULT_HASH|CONFIG.*|TRACE.*"
    r"|QUARANTINE_PATH|INTERNAL_.*|ATTR_SOURCE|LITERAL_PATHSPECS|ALLOW_PROTOCOL|EXEC_PATH)"
)
_USER_INFORMATION = re.compile(r"(?<=://)[^/@\s'\"]+@")


def isolated(home: Path) -> dict[str, str]:
    """Environment of commands that must depend on nothing but the repository; they cannot reach any remote."""
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
    }


def with_remote(process_env: Mapping[str, str], url: str) -> dict[str, str]:
    """Environment of commands that talk to `url`, which they know by the name `REMOTE`.

    The address travels in a variable, because argument lists can be read by every user of the machine.
    """
    settings = {
        f"remote.{REMOTE}.url": url,
        "core.hooksPath": os.devnull,
        "core.fsmonitor": "false",
        "fetch.unpackLimit": "1",
        "fetch.recurseSubmodules": "false",
        "gc.auto": "0",
        "maintenance.auto": "false",
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": "60",
    }
    configured = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        configured |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        **without_locations(process_env),
        **configured,
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "GIT_TERMINAL_PROMPT": "0",
        "GCM_INTERACTIVE": "never",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


def without_locations(process_env: Mapping[str, str]) -> dict[str, str]:
    """The process environment without what would make git work on another repository than the one meant."""
    return {name: value for name, value in process_env.items() if not _LOCATIONS.fullmatch(name)}


def without_credentials(text: str) -> str:
    """Replace the user information of addresses in a text."""
    return _USER_INFORMATION.sub("<redacted>@", text)
