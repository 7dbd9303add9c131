"""What a judge is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from vally.model.trajectory import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """The one tool a judge may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTokens:
    """Tokens of one judge call, reminders included."""

    input_tokens: int = 0
    output_tokens: int = 0


def _accept(_: Mapping[str, object]) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One question. `check` returns the problem of invalid arguments, or None; `timeout_s` includes reminders."""

    model: str
    reasoning_effort: str | None = None
    system_message: str
    user_message: str
    tool: ToolSchema
    evidence_dir: Path | None = None
    evidence_files: tuple[Path, ...] = ()
    check: Callable[[Mapping[str, object]], str | None] = _accept
    timeout_s: float = 120
    max_reminders: int = 2
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A valid answer: the arguments of the tool call."""

    args: Mapping[str, object]
    latency_ms: int = 0
    reminders_used: int = 0
    usage: CallTokens | None = None
    cost: Cost | None = None
    model: str = ""
    cache: str | None = None
