"""The dialect `text`: everything the agent writes is its answer."""

from __future__ import annotations

import re

from vally import Event
from vally_executor_command.dialects.parsed import ParsedTurn, TurnOutput

# Control sequences, operating system commands (titles, links), other strings, and two-character escapes.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[ -/]*[0-~]"
)


def parse_text(output: TurnOutput) -> ParsedTurn:
    """One assistant response with the output without its ANSI sequences; open when the turn is not complete."""
    answer = without_ansi(output.text)
    found = [Event(type="turn_start")]
    if answer.strip():
        found.append(Event(type="assistant_message", data={"content": answer}))
    if output.complete:
        found.append(Event(type="turn_end"))
    return ParsedTurn(events=tuple(found))


def without_ansi(text: str) -> str:
    """Remove ANSI escape sequences."""
    return _ANSI.sub("", text)
