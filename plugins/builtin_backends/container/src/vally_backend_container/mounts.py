"""Which paths of this machine are in the containers of a part of a trial, and which must not be."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vally import BackendError, TrialItem, TrialOptions
from vally_backend_container.config import ContainerArgs, Mount
from vally_backend_container.engine import UNAVAILABLE
from vally_backend_local import (
    home_places,
    host_paths,
    own_installation,
    project_places,
    run_places,
    servers_shown,
    shows_any,
)

_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/sys", "/dev", "/run", "/opt", "/home", "/root")
_PROGRAMS = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "share", "etc")
IMAGES_OWN = frozenset(
    map(
        Path,
        [
            *("/", "/usr", "/usr/local", "/var", "/var/lib", "/tmp", "/var/tmp", *_TOP),
            *(f"{top}/{name}" for top in ("/usr", "/usr/local") for name in _PROGRAMS),
        ],
    )
)
"""What of this machine must not lie over the image's own: programs of one do not run with libraries of the other."""
SYSTEM_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))


class Sights:
    """What containers of a run see; `places` are directories of the run that no agent may look into."""

    def __init__(self, args: ContainerArgs, process_env: Mapping[str, str], places: Iterable[Path]) -> None:
        self._args = args
        self._places = [path.resolve() for path in places]
        self._homes = [path.resolve() for path in home_places(process_env)]

    def common(self, item: TrialItem, options: TrialOptions, writable: Iterable[Path], temporary: Path) -> list[Mount]:
        """What every container has. Raises BackendError when a mount of the user lies in the workspace."""
        secret = self._secret(item, options)
        paths = [path for path in own_installation() if not shows_any(path, secret)]
        mounts = [*_read_only(paths), *self._args.mount, *_temporary(temporary)]
        for path in writable:
            for mount in self._args.mount:
                if mount.target.is_relative_to(path):
                    raise BackendError(f"nothing can be mounted in the workspace, as 'mount={mount.target}' wants to")
            mounts.append(Mount(path, path, read_only=False))
        return mounts

    def agent(self, item: TrialItem, options: TrialOptions) -> list[Mount]:
        """What the agent's has besides. Raises BackendError when an MCP server starts where it must not look."""
        secret = self._secret(item, options)
        paths = [path for path in host_paths(options) if not shows_any(path, secret)]
        servers = servers_shown(item, secret, is_asked_for=self.is_mounted, argument="mount={path}:{path}:ro")
        return _read_only([*paths, *servers])

    def graders(self, item: TrialItem, options: TrialOptions) -> tuple[list[Mount], list[Path]]:
        """What a grader's has besides, and what is hidden in it. Raises BackendError."""
        project = list(dict.fromkeys(path.resolve() for path in project_places(item)))
        for path in project:
            if path in (Path("/"), Path("/usr"), Path("/bin"), Path("/lib"), Path("/etc")):
                raise BackendError(
                    f"'{path}' cannot be shown to graders: it would hide the image's own", code=UNAVAILABLE
                )
        closed = [path.resolve() for path in (*run_places(options), *self._places)]
        below = [path for path in closed if any(path.is_relative_to(place) for place in project)]
        mounts = [Mount(path, path) for path in project]
        return mounts, [path for path in below if not shows_any(path, project)]

    def is_mounted(self, path: Path) -> bool:
        """Whether the user has a path mounted where it lies on this machine."""
        real = path.resolve()
        return any(mount.source == mount.target and real.is_relative_to(mount.source) for mount in self._args.mount)

    def _secret(self, item: TrialItem, options: TrialOptions) -> list[Path]:
        spec = item.spec_path.resolve()
        places = [*project_places(item), *run_places(options)]
        return [*self._places, *self._homes, spec, *(path.resolve() for path in places)]


def _temporary(directory: Path) -> list[Mount]:
    """The system's temporary directories, so that what is written there counts as the trial's."""
    mounts = []
    for number, target in enumerate(SYSTEM_TEMPORARY):
        source = directory / f"tmp-{number}"
        source.mkdir(exist_ok=True)
        source.chmod(0o1777)
        mounts.append(Mount(source, target, read_only=False))
    return mounts


def _read_only(paths: Iterable[Path]) -> list[Mount]:
    """Mounts by the name given and where the path really lies, without those that the image has its own of."""
    mounts = []
    for path in paths:
        real = Path(os.path.realpath(path))
        for target in dict.fromkeys((Path(os.path.normpath(path.absolute())), real)):
            own = target in IMAGES_OWN or (real.is_file() and target.parent in IMAGES_OWN)
            if real.exists() and not own:
                mounts.append(Mount(real, target))
    return mounts


def distinct(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """One mount per target, a later one instead of an earlier; without those that another shows the same way."""
    by_target = {mount.target: mount for mount in mounts}
    kept = []
    for mount in by_target.values():
        above = next((by_target[place] for place in mount.target.parents if place in by_target), None)
        shown = above is not None and above.source / mount.target.relative_to(above.target) == mount.source
        if above is None or not shown or above.read_only != mount.read_only:
            kept.append(mount)
    return tuple(sorted(kept, key=lambda mount: len(mount.target.parts)))


def checked_home(home: str | None, sights: Sights) -> None:
    """Raise BackendError when the caller's home is to be used and is not there."""
    if home is None or not sights.is_mounted(Path(home)):
        raise BackendError(
            f"'home: host' needs '{home}', which is not in the container; "
            f"allow it with --backend-args mount={home}:{home}",
            code="unsupported-option",
        )
