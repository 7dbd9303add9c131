"""What the processes of a trial may see: which places are hidden, and what is shown all the same."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vally import BackendError, TrialItem, TrialOptions
from vally_backend_local import (
    home_places,
    host_paths,
    own_installation,
    project_places,
    run_places,
    servers_shown,
    shows_any,
)
from vally_backend_sandbox.config import SandboxArgs
from vally_backend_sandbox.mounts import REPLACED, View
from vally_backend_sandbox.probing import UNAVAILABLE

HIDDEN = tuple(map(Path, ("/home", "/root", "/run")))
CREDENTIALS = tuple(
    Path("/etc", name)
    for name in ("shadow", "shadow-", "gshadow", "gshadow-", "ssh", "ssl/private", "sudoers", "sudoers.d")
)
"""What only root can read, who in a sandbox is still the owner."""
SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/dev", "/sys")))
INSTALLATIONS = ("DOTNET_ROOT", "GOROOT", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RUSTUP_HOME", "VIRTUAL_ENV")
"""Variables that name where programs of `PATH` are installed, and hold no credentials."""
RESOLVER = Path("/etc/resolv.conf")


class Views:
    """Makes views for the trials of a run; `places` are directories of the run that no process may look into."""

    def __init__(self, args: SandboxArgs, process_env: Mapping[str, str], places: Iterable[Path]) -> None:
        self._args = args
        path = process_env.get("PATH", os.defpath).split(os.pathsep)
        named = [*path, *(process_env.get(name, "") for name in INSTALLATIONS)]
        self._programs = [Path(item) for item in named if Path(item).is_absolute()]
        self._hidden = [*HIDDEN, *CREDENTIALS, *home_places(process_env)]
        self._places = list(places)

    def agent(self, temporary: Path, item: TrialItem, options: TrialOptions, writable: Iterable[Path]) -> View:
        """What the agent sees. Raises BackendError when it needs what it must not see."""
        view = self._base(temporary, item, options)
        view.show(self._unless_secret(host_paths(options), view, item))
        secret = _secret(view, item)
        view.show(servers_shown(item, secret, is_asked_for=self._is_asked_for, argument="ro={path}"))
        return self._finished(view, writable)

    def setup(self, temporary: Path, item: TrialItem, options: TrialOptions, writable: Iterable[Path]) -> View:
        """What set-up commands see."""
        return self._finished(self._base(temporary, item, options), writable)

    def graders(self, temporary: Path, item: TrialItem, options: TrialOptions, writable: Iterable[Path]) -> View:
        """What graders see: the project too."""
        view = self._base(temporary, item, options)
        view.set("ro", project_places(item))
        view.set("hide", run_places(options))
        return self._finished(view, writable)

    def _base(self, temporary: Path, item: TrialItem, options: TrialOptions) -> View:
        view = View(temporary)
        view.set("hide", (path for path in self._hidden if _can_be_hidden(path)))
        for path in (*project_places(item), *self._places, *run_places(options)):
            if path.resolve() in REPLACED:
                continue
            if not _can_be_hidden(path):
                raise BackendError(
                    f"'{path}' cannot be hidden from the agent: the system's own directories lie there",
                    code=UNAVAILABLE,
                )
            view.set("hide", [path])
        shown = [*self._programs, *own_installation()]
        view.show(self._unless_secret(shown, view, item))
        view.show([RESOLVER])
        return view

    def _finished(self, view: View, writable: Iterable[Path]) -> View:
        args = self._args
        view.set("ro", args.ro)
        view.set("rw", args.rw)
        view.set("hide", args.hide)
        view.set("rw", writable)
        return view

    def _unless_secret(self, paths: Iterable[Path], view: View, item: TrialItem) -> list[Path]:
        """Leave out directories in which a hidden one lies: showing them would show too much."""
        secret = _secret(view, item)
        return [path for path in paths if not shows_any(path, secret)]

    def _is_asked_for(self, path: Path) -> bool:
        real = path.resolve()
        return any(real.is_relative_to(given.resolve()) for given in (*self._args.ro, *self._args.rw))


def _secret(view: View, item: TrialItem) -> list[Path]:
    return [place for place, access in view.rules.items() if access == "hide"] + [item.spec_path.resolve()]


def is_apart(directory: Path, item: TrialItem) -> bool:
    """Whether a recorded workspace is a directory in which neither the project nor the system lies."""
    if not directory.is_absolute() or not directory.is_dir() or not _can_be_hidden(directory):
        return False
    real = directory.resolve()
    return not any(path.resolve().is_relative_to(real) for path in project_places(item))


def _can_be_hidden(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    return not any(place.is_relative_to(real) for place in (*SYSTEM, *REPLACED))
