"""Recorded streams of real agents, and what is expected of their parsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from checkout import ROOT

from vally_executor_command.dialects import DIALECTS, ParsedTurn, TurnOutput

STREAMS = ROOT / "plugins" / "builtin_executors" / "command" / "tests" / "streams"


class Stream(NamedTuple):
    """Agent, version, scenario and turn of a recording; `name` is that of its files."""

    agent: str
    version: str
    scenario: str
    turn: int
    name: str


def stream(name: str) -> Stream:
    """The facts in a name such as `codex-0.171.0-turns-1`."""
    agent, version, rest = name.split("-", 2)
    scenario, turn = rest.rsplit("-", 1)
    return Stream(agent, version, scenario, int(turn), name)


def streams() -> Iterator[Stream]:
    """All recordings."""
    return (stream(path.stem) for path in sorted(STREAMS.glob("*.jsonl")))


def output(found: Stream, **changes: Any) -> TurnOutput:
    """What the parser gets for a recording, the turns before it parsed first."""
    before = {} if found.turn == 0 else parsed(stream(f"{found.name[:-1]}{found.turn - 1}")).totals
    usage = STREAMS / f"{found.name}.usage.json"
    recorded = TurnOutput(
        text=(STREAMS / f"{found.name}.jsonl").read_text(),
        complete=found.scenario != "refused",
        usage=usage.read_text() if usage.exists() else "",
        before=before,
    )
    return replace(recorded, **changes)


def parsed(found: Stream, **changes: Any) -> ParsedTurn:
    """What the parser makes of a recording."""
    return DIALECTS[found.agent](output(found, **changes))


def golden(name: str) -> str:
    """The text of the golden file of a recording, as the parser has it now."""
    turn = parsed(stream(name))
    facts = {key: value for key, value in asdict(replace(turn, events=())).items() if value not in (None, {}, ())}
    events = [event.model_dump(mode="json", exclude_none=True, by_alias=True) for event in turn.events]
    return json.dumps({**facts, "events": events}, indent=1, ensure_ascii=False, default=list) + "\n"
