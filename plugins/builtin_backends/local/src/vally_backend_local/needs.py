"""Which diffs the graders of a stimulus read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vally import PluginHost, Stimulus


@dataclass(frozen=True)
class Needs:
    """Which diffs the graders of a stimulus read."""

    diff: bool
    turn_diffs: bool


def diff_needs(host: PluginHost, stimulus: Stimulus) -> Needs:
    """Ask the configs of all grader entries what they read."""
    diff = turn_diffs = False
    for entry in stimulus.graders:
        evidence = _evidence(host, entry.type, entry.config)
        diff = diff or not evidence.isdisjoint({"diff", "turn-diff"})
        turn_diffs = turn_diffs or ("turn-diff" in evidence and entry.turn is not None)
    return Needs(diff, turn_diffs and len(stimulus.turns) > 1)


def _evidence(host: PluginHost, keyword: str, config: Mapping[str, object]) -> frozenset[str]:
    record = host.get("grader", keyword)
    if record is None:
        return frozenset()
    try:
        evidence = getattr(host.parse_config(record, config, lenient=True), "evidence", None)
    except Exception:
        # Grading will say what is wrong with it.
        return frozenset()
    return frozenset(evidence()) if callable(evidence) else frozenset()
