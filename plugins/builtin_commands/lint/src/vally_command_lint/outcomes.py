"""Stimuli that pass whatever the agent does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vally import EvalSpec, GraderSpec, Stimulus, VallyError
from vally_command_lint.findings import Finding
from vally_command_lint.stimulus_entries import Entries, Entry, Reports

_TOLERANCE = 1e-9
_HINT = "add a grader that can fail"


@dataclass
class Outcomes:
    """Asks graders whether a config alone settles their verdict."""

    entries: Entries
    _methods: dict[str, Any] = field(default_factory=dict)

    def findings(self, spec: EvalSpec, stimulus: Stimulus, entries: list[Entry], reports: Reports) -> Iterator[Finding]:
        """The stimulus itself, when none of its graders, or not enough of them, can fail."""
        if not entries or len(entries) < len(stimulus.graders):
            return
        reason = self._reason(spec, entries)
        if reason is not None:
            yield from reports.at_stimulus("cannot-fail", f"cannot fail: {reason}", stimulus, _HINT)

    def _reason(self, spec: EvalSpec, entries: list[Entry]) -> str | None:
        threshold = spec.scoring.threshold
        if threshold is None:
            return "every grader passes whatever the agent does" if all(map(self._passes, entries)) else None
        if not all(self._passes(entry) for entry in entries if entry.written.required):
            return None
        if threshold <= 0:
            return f"its score is at least the threshold {threshold:g}"
        weights = [_weight(spec, entry) for entry in entries]
        if sum(weights) <= 0:
            weights = [1.0] * len(entries)
        sure = sum(weight for weight, entry in zip(weights, entries, strict=True) if weight and self._passes(entry))
        if sure / sum(weights) < threshold - _TOLERANCE:
            return None
        return f"what can fail weighs too little for the threshold {threshold:g}"

    def _passes(self, entry: Entry) -> bool:
        """Whether the entry passes in every run; a view may be empty or not recorded, which is a failure."""
        if entry.written.turn is not None or entry.written.scope not in (None, "all"):
            return False
        method = self._method(entry.record)
        if method is None:
            return False
        try:
            return method(self.entries.host.parse_config(entry.record, entry.config)) is True
        except Exception:  # invalid configs were reported, and a plugin may raise anything
            return False

    def _method(self, record: GraderSpec) -> Any:
        if record.name not in self._methods:
            try:
                grader = self.entries.host.create(record)
            except VallyError:
                grader = None
            method = getattr(grader, "settled_verdict", None)
            self._methods[record.name] = method if callable(method) else None
        return self._methods[record.name]


def _weight(spec: EvalSpec, entry: Entry) -> float:
    """The weight of an entry: its own, that of its name, of its type, else 1; a constraint counts only when named."""
    written, weights = entry.written, spec.scoring.weights
    if written.constraint is not None:
        return weights.get(f"constraints.{written.constraint}", 0.0)
    if written.weight is not None:
        return written.weight
    if written.name is not None and written.name in weights:
        return weights[written.name]
    return weights.get(written.type, 1.0)
