"""Totals of a run that is going on, and the names under which its trials are shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import MAIN_VARIANT, NO_MODEL, name_line, plural, short_clock

if TYPE_CHECKING:
    from vally import TrialDone, TrialItem


def arm_of(item: TrialItem) -> str:
    """The eval of an item, in an experiment with its variant, because one stimulus runs in all of them."""
    return item.eval_name if item.variant == MAIN_VARIANT else f"{item.eval_name} / {item.variant}"


@dataclass(frozen=True, slots=True)
class TrialLabel:
    """`full` is `config-eval / writes-json #2/3 (gpt-x)`, `trial` the same without the model, `tag` `writes-json#2`."""

    full: str
    trial: str
    tag: str

    @classmethod
    def of(cls, item: TrialItem) -> TrialLabel:
        """The names of an item."""
        number = f" #{item.trial_index + 1}/{item.total_trials}" if item.total_trials > 1 else ""
        trial = name_line(f"{arm_of(item)} / {item.stimulus.name}{number}")
        model = name_line(item.model or NO_MODEL)
        return cls(f"{trial} ({model})", trial, name_line(f"{item.stimulus.name}#{item.trial_index + 1}"))


class Figures:
    """Counts of trials, tokens and time so far."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._started = now()
        self.total = 0
        self._done = self._passed = self._failed = self._errors = self._tokens = 0

    def add(self, event: TrialDone) -> None:
        """Count one finished trial."""
        self._done, self.total = event.completed, event.total
        result = event.result
        if result.status == "error" or (result.grade_result is not None and event.passed is None):
            self._errors += 1
        elif event.passed is not None:
            self._passed += event.passed
            self._failed += not event.passed
        usage = result.trajectory.metrics.token_usage if result.trajectory and result.trajectory.metrics else None
        judge = result.judge_usage
        self._tokens += (usage.total_tokens if usage else 0) + (judge.total_tokens if judge else 0)

    def line(self) -> str:
        """`trials 12/40 · 10 pass · 1 fail · 1 error · 2:41 elapsed · ~6:10 left · 184k tokens`."""
        elapsed = self._now() - self._started
        parts = [
            f"trials {self._done}/{self.total}",
            f"{self._passed} pass",
            f"{self._failed} fail",
            plural(self._errors, "error"),
            f"{short_clock(elapsed)} elapsed",
        ]
        if 0 < self._done < self.total:
            parts.append(f"~{short_clock(elapsed / self._done * (self.total - self._done))} left")
        parts.append(f"{self._tokens // 1000}k tokens" if self._tokens >= 1000 else plural(self._tokens, "token"))
        return " · ".join(parts)
