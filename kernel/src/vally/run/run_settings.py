"""How a run proceeds, and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import DEFAULT_BACKEND
from vally.run.reporting import RunOptions

if TYPE_CHECKING:
    from vally.errors import VallyError
    from vally.model.evalspec import Diagnostic
    from vally.model.results import RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run proceeds. `environ` is the process environment; `notice` prints one line for people at once, `warn` a
    warning, `fail` an error with its hints.
    """

    workers: int = 5
    max_per_model: int | None = None
    max_retries: int = 0
    fail_fast: bool = False
    max_cost: tuple[float, str] | None = None
    max_tokens: int | None = None
    skip_grade: bool = False
    require_pass: bool = False
    keep_session_logs: bool = False
    shutdown_timeout_s: float = 30.0
    backend_name: str = DEFAULT_BACKEND
    version: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reporting: RunOptions = field(default_factory=RunOptions)
    kind: str = "eval"
    diagnostics: tuple[Diagnostic, ...] = ()
    notice: Callable[[str], None] = print
    warn: Callable[[str], None] = print
    fail: Callable[[VallyError], None] = print
    handle_signals: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to. `artifacts` maps labels to files; `signal` is the number of the signal that ended it."""

    summary: RunSummary
    artifacts: Mapping[str, Path]
    signal: int | None = None
    stdout_closed: bool = False
    lines: tuple[str, ...] = ()
