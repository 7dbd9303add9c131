"""Where the Copilot runtime lies on this machine."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vally import ExecutorError

OLDEST_TESTED = "1.0.100"
PATH_VARIABLE = "COPILOT_CLI_PATH"
SKIP_VARIABLE = "COPILOT_SKIP_CLI_DOWNLOAD"
HINT = "run 'python -m vally_executor_copilot_sdk provision' or set COPILOT_CLI_PATH"
_MUSL = "/lib/ld-musl-*"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Places:
    """What finding a runtime depends on; `cache` is vally's own cache root, `project` the directory of the project."""

    process_env: Mapping[str, str]
    cache: Path | None = None
    project: Path | None = None


def installed_runtime(cli_path: Path | None, places: Places) -> Path | None:
    """The first runtime that is on this machine."""
    found = (path for _, path in _candidates(cli_path, places) if path is not None and path.is_file())
    chosen = next(found, None)
    return None if chosen is None else _smallest(chosen, places)


def find_runtime(cli_path: Path | None, places: Places, warn: Callable[[str], None]) -> Path:
    """The first runtime there is, at last the SDK's own; raises `ExecutorError` that lists every place.

    Blocks; `warn` is told before something may be downloaded.
    """
    found = installed_runtime(cli_path, places) or _of_the_sdk(places.process_env, warn)
    if found is not None:
        return found
    looked = [what if path is None else f"{what} ({path})" for what, path in _candidates(cli_path, places)]
    raise ExecutorError(
        f"no Copilot runtime was found; {HINT} (looked at {', '.join(looked)}, the SDK's own download)",
        code="executor-unavailable",
    )


def platform_name() -> str:
    """How the runtime's packages name this machine, e.g. `linux-x64`."""
    system = {"win32": "win32", "darwin": "darwin"}.get(sys.platform, "linux")
    if system == "linux" and any(Path("/").glob(_MUSL.lstrip("/"))):
        system = "linuxmusl"
    machine = platform.machine().lower()
    return f"{system}-{'arm64' if machine in ('arm64', 'aarch64') else 'x64'}"


def is_tested(version: str) -> bool:
    """Whether the executor was tested with this version of the runtime."""
    return _order(version) >= _order(OLDEST_TESTED)


def unpacked(root: Path) -> Iterator[Path]:
    """Runtimes of tested versions that were unpacked below `root/<version>`, the newest first."""
    try:
        versions = [entry for entry in root.iterdir() if _NUMBERS.match(entry.name) and is_tested(entry.name)]
    except OSError:
        return
    for version in sorted(versions, key=lambda entry: _order(entry.name), reverse=True):
        found = runtime_below(version)
        if found is not None:
            yield found


def runtime_below(directory: Path) -> Path | None:
    """The small runtime that the CLI unpacks, else the CLI itself, below the directory of one version."""
    place = directory / "prebuilds" / platform_name()
    programs = (place / executable(name) for name in ("copilot-runtime", "copilot"))
    return next((path for path in programs if path.is_file()), None)


def _candidates(cli_path: Path | None, places: Places) -> Iterator[tuple[str, Path | None]]:
    env = places.process_env
    yield "cliPath" if cli_path else "cliPath (not set)", cli_path
    named = env.get(PATH_VARIABLE)
    yield PATH_VARIABLE if named else f"{PATH_VARIABLE} (not set)", Path(named) if named else None
    if places.cache is not None:
        own = places.cache / "copilot"
        yield f"the cache '{own}'", next(unpacked(own), None)
    for cache in _cli_caches(env):
        yield f"what the CLI unpacked in '{cache}'", next(unpacked(cache), None)
    on_path = shutil.which("copilot", path=env.get("PATH"))
    yield "'copilot' on PATH", Path(on_path) if on_path else None
    if places.project is not None:
        yield "the project's own packages", places.project / "node_modules" / ".bin" / "copilot"


def _cli_caches(env: Mapping[str, str]) -> Iterator[Path]:
    name = platform_name()
    if env.get("XDG_CACHE_HOME"):
        yield Path(env["XDG_CACHE_HOME"]) / "copilot" / "pkg" / name
    home = env.get("HOME") or env.get("USERPROFILE")
    if home:
        below = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
        yield Path(home, *below, "copilot", "pkg", name)
    if env.get("LOCALAPPDATA"):
        yield Path(env["LOCALAPPDATA"]) / "copilot" / "pkg" / name


def _of_the_sdk(env: Mapping[str, str], warn: Callable[[str], None]) -> Path | None:
    """The runtime that the SDK fetches for itself, which takes a network; None when it may not or cannot."""
    if env.get(SKIP_VARIABLE, "").lower() in ("1", "true", "yes"):
        return None
    from copilot import CopilotClient, RuntimeConnection

    warn(f"no Copilot runtime was found; the SDK may now download its own ({SKIP_VARIABLE}=1 prevents that)")
    connection = RuntimeConnection.for_stdio()
    try:
        CopilotClient(connection=connection, env={})
    except RuntimeError:
        return None
    return Path(connection.path) if connection.path else None


def _smallest(path: Path, places: Places) -> Path:
    """Given the whole CLI, the small runtime of its version: it starts quickly and needs half the memory."""
    real = path.resolve()
    if real.stem == "copilot-runtime":
        return real
    program = _native(real)
    beside = program.with_name(executable("copilot-runtime"))
    if beside.is_file():
        return beside
    version = _version_beside(program)
    if version is not None:
        for cache in _cli_caches(places.process_env):
            found = runtime_below(cache / version)
            if found is not None:
                return found
    return program


def _native(path: Path) -> Path:
    """The program that the loader script of the npm package starts."""
    if path.suffix != ".js":
        return path
    name = f"copilot-{platform_name()}"
    for folder in (path.parent.parent, path.parent / "node_modules" / "@github"):
        found = folder / name / executable("copilot")
        if found.is_file():
            return found
    return path


def _version_beside(program: Path) -> str | None:
    try:
        told = json.loads((program.parent / "package.json").read_bytes())
    except (OSError, ValueError):
        return None
    version = told.get("version") if isinstance(told, dict) else None
    return version if isinstance(version, str) and _NUMBERS.match(version) else None


def executable(name: str) -> str:
    """The file name of a program on this system."""
    return f"{name}.exe" if sys.platform == "win32" else name


def _order(version: str) -> tuple[int, ...]:
    match = _NUMBERS.match(version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
