"""What a process in a sandbox sees of the file system."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Access = Literal["hide", "ro", "rw"]
SYSTEM_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
SHARED_MEMORY = Path("/dev/shm")
REPLACED = (*SYSTEM_TEMPORARY, SHARED_MEMORY)
WHOLE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
"""Arguments of `bwrap` that show this machine, to be read only."""


@dataclass
class View:
    """Real paths with what a process may do there; a deeper path beats those above it, a later rule an earlier one.

    Everything else can be read. `temporary` is an existing directory in the place of the system's temporary ones and
    of shared memory, so that what is written there counts as the trial's. No process may see it under its own name, or
    the next one would be shown whatever a link in its place leads to.
    """

    temporary: Path
    rules: dict[Path, Access] = field(default_factory=dict)

    def set(self, access: Access, paths: Iterable[Path]) -> None:
        """Add a rule for each path that exists."""
        for path in paths:
            real = Path(os.path.realpath(path))
            if _exists(real):
                self.rules[real] = access

    def show(self, paths: Iterable[Path]) -> None:
        """Let paths that lie in a hidden place be read, by the name given and where they really are."""
        for path in paths:
            for place in dict.fromkeys((Path(os.path.realpath(path)), _named(path))):
                if _exists(place) and self._hides(place):
                    self.rules[place] = "ro"

    def sees(self, path: Path) -> bool:
        """Whether a path of this machine is visible, also where links lead."""
        return not any(map(self._hides, (_named(path), Path(os.path.realpath(path)))))

    def _hides(self, path: Path) -> bool:
        return _is_hidden(path, self.rules)

    def arguments(self, extra: Mapping[Path, Access]) -> list[str]:
        """The arguments of `bwrap`; `extra` are further rules for one process."""
        rules = _without_needless({**self.rules, **extra})
        made = [*WHOLE, "--bind", str(self._directory("shm")), str(SHARED_MEMORY)]
        for number, path in enumerate(SYSTEM_TEMPORARY):
            if path.is_dir() and not path.is_symlink():
                made += ["--bind", str(self._directory(f"tmp-{number}")), str(path)]
        for path in sorted(rules, key=lambda path: len(path.parts)):
            made += _mount(path, rules[path])
        # Settings of the kernel belong to root, and rights to change them need no capability.
        kernel = ["/proc"] if os.geteuid() == 0 else []
        closed = [str(path) for path, access in rules.items() if access == "hide" and path.is_dir()]
        for place in ["/dev", *kernel, *closed]:
            made += ["--remount-ro", place]
        return made

    def _directory(self, name: str) -> Path:
        path = self.temporary / name
        path.mkdir(mode=0o700, exist_ok=True)
        return path


def _is_hidden(path: Path, rules: Mapping[Path, Access]) -> bool:
    for place in (path, *path.parents):
        if place in rules:
            return rules[place] == "hide"
    return any(place in REPLACED for place in path.parents)


def _without_needless(rules: Mapping[Path, Access]) -> dict[Path, Access]:
    """Leave out what hides something in a hidden place: the mount would only tell its name."""
    return {
        path: access
        for path, access in rules.items()
        if access != "hide" or not _is_hidden(path, {place: rules[place] for place in rules if place != path})
    }


def _mount(path: Path, access: Access) -> list[str]:
    if access != "hide":
        return ["--bind" if access == "rw" else "--ro-bind", os.path.realpath(path), str(path)]
    return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]


def _named(path: Path) -> Path:
    """An absolute path as it was given: links stay."""
    return Path(os.path.normpath(path.absolute()))


def _exists(path: Path) -> bool:
    """Whether a path exists that this user can reach; what the user cannot reach, no sandbox can either."""
    try:
        return path.exists()
    except PermissionError:
        return False
