"""Which graders a golden input can put to the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vally import ConfigInvalid, GraderSpec, PluginError

if TYPE_CHECKING:
    from pathlib import Path

    from vally import GraderEntry, PluginHost, Stimulus
    from vally_command_oracle.golden import Golden

NEEDS_TRAJECTORY = "needs golden_trajectory"
NEEDS_STATE = "needs golden_patch or golden_command"
NO_JUDGE = "no judge is asked about a baseline"
NOT_GRADABLE = "needs a run"


@dataclass(slots=True, kw_only=True)
class Gradable:
    """The entries of a stimulus that are graded, and the others with the reason."""

    entries: list[GraderEntry] = field(default_factory=list)
    others: list[tuple[GraderEntry, str]] = field(default_factory=list)
    absences: list[bool] = field(default_factory=list)
    """Of each graded entry whether passing on an empty baseline says nothing about it."""


def label(entry: GraderEntry) -> str:
    """How reports name an entry: its own name, else its type."""
    return entry.name or entry.type


def gradable(stimulus: Stimulus, golden: Golden, host: PluginHost, spec_dir: Path, *, baseline: bool) -> Gradable:
    """Sort the effective graders of a stimulus."""
    found = Gradable()
    for entry in stimulus.graders:
        try:
            record = host.require("grader", entry.type)
            config = host.parse_config(record, entry.config, lenient=True, spec_dir=spec_dir)
        except (ConfigInvalid, PluginError):
            # It stays among the graded ones, where its own error says what is wrong.
            found.entries.append(entry)
            found.absences.append(False)
            continue
        assert isinstance(record, GraderSpec)
        reason = _obstacle(record, config, entry, stimulus, golden)
        if reason is None and baseline and record.requires_judge:
            reason = NO_JUDGE
        if reason is None:
            found.entries.append(entry)
            found.absences.append(baseline and _is_absence(host, record, config, entry))
        else:
            found.others.append((entry, reason))
    return found


def _obstacle(record: GraderSpec, config: Any, entry: GraderEntry, stimulus: Stimulus, golden: Golden) -> str | None:
    """Why an entry cannot be graded with this input; None when it can."""
    needed = record.gradable_with(config)
    if needed == "none":
        return NOT_GRADABLE
    if needed == "state" and not golden.has_state:
        return NEEDS_STATE
    if needed == "trajectory" and not golden.has_trajectory:
        return NEEDS_TRAJECTORY
    if entry.turn is None or (entry.turn == 0 and len(stimulus.turns) == 1):
        return None
    if needed == "state" or not golden.has_trajectory:
        return "a golden input for the workspace has no turns"
    # An input that cannot be read is an error of its own.
    if golden.problem is None and entry.turn not in golden.turns:
        return f"golden_trajectory has no turn {entry.turn}"
    return None


def _is_absence(host: PluginHost, record: GraderSpec, config: Any, entry: GraderEntry) -> bool:
    """Whether an entry asserts that something is absent, or looks at a part that an empty baseline has not."""
    if entry.scope is not None:
        return True
    method = getattr(host.create(record), "asserts_absence", None)
    try:
        return method is not None and method(config) is True
    except Exception:
        return False
