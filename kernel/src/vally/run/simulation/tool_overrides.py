"""Tool overrides of a stimulus: MCP servers get a proxy in front of them, and canned calls their mark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.jsonio import canonical_json, parse_json, plain_value
from vally.run.atomic import atomic_write

if TYPE_CHECKING:
    from vally.model.evalspec import McpServer, Stimulus
    from vally.model.trajectory import Event, Trajectory

DIRECTORY = "simulation"
LOG = "answered.jsonl"
PROXY = Path(__file__).with_name("mcp_proxy.py")
_PREFIXES = ("__", "-", "_", ".", "/", ":")


def wrap_servers(
    servers: Mapping[str, McpServer], stimulus: Stimulus, trial_dir: Path, warn: Callable[[str], None]
) -> dict[str, McpServer]:
    """The servers of a trial with a proxy before each that an override of the stimulus may answer for.

    `servers` are resolved. What the proxies need lies in `trial_dir`, which is private to the trial.
    """
    simulation: Mapping[str, Any] = stimulus.simulation or {}
    overrides: Sequence[Mapping[str, Any]] = simulation.get("tool_overrides") or ()
    if not overrides:
        return dict(servers)
    _warn_of_strangers(overrides, servers, warn)
    wrapped = {}
    for number, (name, server) in enumerate(servers.items()):
        own = [item for item in overrides if item.get("server") in (None, name)]
        wrapped[name] = _wrapped(server, own, trial_dir / DIRECTORY, number) if own else server
    return wrapped


def _warn_of_strangers(
    overrides: Sequence[Mapping[str, Any]], servers: Mapping[str, McpServer], warn: Callable[[str], None]
) -> None:
    named = {item["server"] for item in overrides if item.get("server") is not None}
    for name in sorted(named - set(servers)):
        warn(f"tool overrides name MCP server '{name}', which the environment does not have")
    if not servers and not named:
        warn("tool overrides answer for nothing: the environment has no MCP server")


def _wrapped(server: McpServer, overrides: Sequence[Mapping[str, Any]], directory: Path, number: int) -> McpServer:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / f"server-{number}.json"
    if server.type == "stdio":
        behind: dict[str, Any] = {"command": [server.command, *server.args], "cwd": server.cwd}
    else:
        behind = {"type": server.type, "url": server.url, "headers": dict(server.headers)}
    document = {
        "server": server.name,
        **behind,
        "overrides": [{key: item[key] for key in item if key != "server"} for item in overrides],
        "log": str(directory / LOG),
    }
    # Headers may be secrets.
    atomic_write(config, json.dumps(document), mode=0o600)
    # Isolated, so that nothing in the workspace or the user's directories is imported.
    args = ("-I", "-S", str(PROXY), str(config))
    return replace(server, type="stdio", url=None, headers={}, command=sys.executable, args=args)


def mark_simulated(trajectory: Trajectory, trial_dir: Path) -> Trajectory:
    """The trajectory with `simulated: true` on each call that a proxy answered, and on its result."""
    answered = _answered(trial_dir / DIRECTORY / LOG)
    if not answered:
        return trajectory
    marked: set[int] = set()
    ids: set[tuple[str | None, str]] = set()
    for entry in answered:
        place = _place(trajectory.events, entry, marked)
        if place is not None:
            marked.add(place)
            ids.add(_call_id(trajectory.events[place]))
    events = [
        _marked(event) if index in marked or (event.type == "tool_result" and _call_id(event) in ids) else event
        for index, event in enumerate(trajectory.events)
    ]
    return trajectory.model_copy(update={"events": events})


def _answered(log: Path) -> list[dict[str, Any]]:
    try:
        lines = log.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = parse_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def _place(events: Sequence[Event], entry: Mapping[str, Any], taken: set[int]) -> int | None:
    """The first call that an answer may belong to and that no other answer has."""
    wanted = _canonical(entry.get("arguments"))
    for index, event in enumerate(events):
        if event.type != "tool_call" or index in taken or not _is_tool(event, entry):
            continue
        if _canonical(event.data.get("arguments")) == wanted:
            return index
    return None


def _is_tool(event: Event, entry: Mapping[str, Any]) -> bool:
    """Whether a call names the tool, with or without the name of its server before it."""
    server, tool = str(entry.get("server")), str(entry.get("tool"))
    if event.data.get("mcpServer") not in (None, server):
        return False
    name = event.data.get("toolName")
    if not isinstance(name, str):
        return False
    return name == tool or name.removeprefix("mcp__") in {f"{server}{separator}{tool}" for separator in _PREFIXES}


def _canonical(arguments: object) -> str:
    return canonical_json(plain_value({} if arguments is None else arguments).value)


def _call_id(event: Event) -> tuple[str | None, str]:
    return event.agent_id, str(event.data.get("toolCallId"))


def _marked(event: Event) -> Event:
    return event.model_copy(update={"data": {**event.data, "simulated": True}})
