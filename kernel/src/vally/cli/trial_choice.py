"""Which trials of a run are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.cli.name_patterns import is_stimulus_named
from vally.errors import VallyError
from vally.text.suggest import did_you_mean

if TYPE_CHECKING:
    from vally.run.stored_trials import StoredTrials, TrialEntry

_MOST_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialChoice:
    """A selection of trials: a glob for the stimulus, the exact trial (from 0), model and variant."""

    stimulus: str | None = None
    trial: int | None = None
    model: str | None = None
    variant: str | None = None
    failed: bool = False

    @property
    def selects(self) -> bool:
        """Whether anything is selected at all."""
        return self.failed or any(value is not None for value in (self.stimulus, self.trial, self.model, self.variant))

    def of(self, trials: StoredTrials) -> list[TrialEntry]:
        """The trials of a file that are meant. Raises `VallyError` for an invalid glob."""
        named = [entry for entry in trials.entries if self._is_meant(entry)]
        if not self.failed:
            return named
        thresholds = trials.thresholds()
        return [entry for entry in named if entry.verdict(thresholds.get(entry.plan)) in ("fail", "error")]

    def _is_meant(self, entry: TrialEntry) -> bool:
        return (
            (self.stimulus is None or is_stimulus_named(self.stimulus, entry.eval_name, entry.stimulus))
            and (self.trial is None or entry.trial_index == self.trial)
            and (self.model is None or entry.model == self.model)
            and (self.variant is None or entry.variant == self.variant)
        )

    def nothing(self, parts: Sequence[StoredTrials]) -> VallyError:
        """The error that no trial is meant, with what there is."""
        entries = [entry for trials in parts for entry in trials.entries]
        if not entries:
            return VallyError("no trial is recorded", code="no-trial")
        checks = [
            ("--stimulus", self.stimulus, [entry.stimulus for entry in entries]),
            ("--model", self.model, [entry.model for entry in entries]),
            ("--variant", self.variant, [entry.variant for entry in entries]),
            (
                "--trial",
                None if self.trial is None else str(self.trial),
                [str(index) for index in sorted({entry.trial_index for entry in entries})],
            ),
        ]
        hints = [hint for option, value, names in checks if value is not None for hint in _hints(option, value, names)]
        return VallyError("no trial matches", code="no-trial", hints=hints)


def _hints(option: str, value: str, names: Iterable[str]) -> list[str]:
    known = list(dict.fromkeys(names))
    if value in known:
        return []
    shown = ", ".join(known[:_MOST_NAMES]) + (", …" if len(known) > _MOST_NAMES else "")
    near = did_you_mean(value, known)
    return [f"{option} is one of: {shown}", *([near] if near else [])]
