"""How a run proceeds, and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.errors import VallyError
    from vally.model.evalspec import Diagnostic
    from vally.model.results import RunSummary
    from vally.run.reporting import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run proceeds. `environ` is the process environment; `notice` prints one line for people at once, `warn` a
    warning, `fail` an error with its hints.
    """

    workers: int
    max_per_model: int | None
    max_retries: int
    fail_fast: bool
    max_cost: tuple[float, str] | None
    max_tokens: int | None
    skip_grade: bool
    keep_session_logs: bool
    shutdown_timeout_s: float
    backend_name: str
    version: str
    environ: Mapping[str, str]
    metadata: Mapping[str, Any]
    suites: Mapping[str, Mapping[str, Any]]
    reporting: RunOptions
    kind: str
    diagnostics: tuple[Diagnostic, ...]
    notice: Callable[[str], None]
    warn: Callable[[str], None]
    fail: Callable[[VallyError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to. `artifacts` maps labels to files; `signal` is the number of the signal that ended it."""

    summary: RunSummary
    artifacts: Mapping[str, Path]
    signal: int | None = None
    stdout_closed: bool = False
    lines: tuple[str, ...] = ()
