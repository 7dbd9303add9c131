"""Patterns that match every text, or none."""

from __future__ import annotations

from collections.abc import Iterator

from vally import Stimulus, matches_every_text, matches_no_text, pattern_values
from vally_command_lint.findings import Finding
from vally_command_lint.stimulus_entries import Entry, Reports, is_filled, quoted

# The spec layer reports these two, and others that match nearly every text.
_REPORTED = frozenset({".*", r"[\s\S]*"})


def pattern_findings(stimulus: Stimulus, entries: list[Entry], reports: Reports) -> Iterator[Finding]:
    """Look at every value that a config model calls a pattern.

    One inside a list or mapping is a condition among others, where a pattern for any text has its use.
    """
    for entry in entries:
        for place, pattern in pattern_values(entry.model, entry.config):
            if not is_filled(pattern):
                continue
            if matches_no_text(pattern):
                message = f"pattern {quoted(pattern)} matches no text"
                yield from reports.at_entry("pattern-never-matches", message, stimulus, entry, *place)
            elif len(place) == 1 and pattern.split(")")[-1] not in _REPORTED and matches_every_text(pattern):
                message = f"pattern {quoted(pattern)} matches every text"
                yield from reports.at_entry("pattern-matches-any-text", message, stimulus, entry, *place)
