"""What backends that confine processes agree on: places that hold secrets, and what processes need all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import vally
from vally import BackendError, McpServer, TrialItem, TrialOptions, candidate_variables

GRADER_INPUT = "EVALUATE_GRADER_INPUT"
"""The variable that names the file with everything a grader may know."""


def withheld_variables(process_env: Mapping[str, str], spec_env: Mapping[str, str]) -> dict[str, str]:
    """What graders do not get of the process environment: all that an agent would not get either."""
    allowed = candidate_variables(process_env)
    return {name: value for name, value in process_env.items() if name not in allowed and name not in spec_env}


def proxy_variables(process_env: Mapping[str, str]) -> dict[str, str]:
    """What agents without the network of this machine do not get: proxies that lead away from their own."""
    return {name: value for name, value in process_env.items() if name.lower().endswith("_proxy")}


def host_paths(options: TrialOptions) -> list[Path]:
    """What the executor says that its agent needs."""
    method: Any = getattr(options.executor, "host_paths", None)
    return [Path(path) for path in method(options.executor_config)] if method is not None else []


def own_installation() -> list[Path]:
    """The Python that runs this program, and the helpers of this program that are started beside the agent."""
    return [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable), Path(vally.__file__).parent]


def project_places(item: TrialItem) -> list[Path]:
    """Where the eval, its graders and expected results lie."""
    return [item.project_root, item.spec_dir, item.spec_path.parent]


def run_places(options: TrialOptions) -> list[Path]:
    """Where results are written."""
    return [path for path in (options.run_dir, options.output_dir) if path is not None]


def home_places(process_env: Mapping[str, str]) -> list[Path]:
    """The home directories of the user, as the environment and as the system names them."""
    named = process_env.get("HOME")
    found = [Path(named)] if named and Path(named).is_absolute() else []
    if sys.platform == "win32":
        return found
    import pwd

    try:
        found.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    except KeyError:
        return found
    return found


def servers_shown(
    item: TrialItem, secret: Iterable[Path], *, is_asked_for: Callable[[Path], bool], argument: str
) -> list[Path]:
    """Where MCP servers start and where their programs lie, without what the user shows anyway.

    None may show one of the real paths `secret`, unless the user asked for it: `argument`, with `{path}` in it, is how.
    Raises BackendError.
    """
    closed, found = list(secret), []
    for name, server in item.stimulus.merged_environment.mcp_servers.items():
        for path in _server_places(item, server):
            if not shows_any(path, closed):
                found.append(path)
            elif not is_asked_for(path):
                raise BackendError(
                    f"MCP server '{name}' starts in '{path}', where the agent could read the eval; "
                    f"give the server a 'cwd' of its own, or allow it with --backend-args {argument.format(path=path)}",
                    code="unsupported-option",
                )
    return found


def _server_places(item: TrialItem, server: McpServer) -> list[Path]:
    """Those of one server, as far as they are not the workspace."""
    if server.type != "stdio":
        return []
    base = server.base_dir or item.spec_dir
    inside = server.cwd is not None and server.cwd.startswith("${workspace}")
    directory = base if server.cwd is None else base / server.cwd
    wanted = [] if inside else [directory]
    if server.command is not None and os.sep in server.command:
        wanted.append((directory / server.command).parent)
    return wanted


def shows_any(path: Path, secret: Iterable[Path]) -> bool:
    """Whether showing a path would show one of the real paths `secret`."""
    real = Path(os.path.realpath(path))
    return any(place.is_relative_to(real) for place in secret)
