"""Tells GitHub Actions about a run: annotations on stderr, and the summary of the step."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from vally import append_step_summary, fit_glyphs, print_warning
from vally_reporter_github.annotations import Annotations
from vally_reporter_github.findings import Findings
from vally_reporter_github.step_summary import summary_text

if TYPE_CHECKING:
    from vally import Diagnostic, Diagnostics, RunComplete, RunStart, TrialDone


class GithubReporter:
    """Silent outside GitHub Actions."""

    def __init__(self) -> None:
        self._start: RunStart | None = None
        self._findings = Findings()
        self._diagnostics: list[Diagnostic] = []

    def on_run_start(self, event: RunStart) -> None:
        """Find out whether a workflow runs the program."""
        self._start = event if event.environ.get("GITHUB_ACTIONS") == "true" else None

    def on_diagnostics(self, event: Diagnostics) -> None:
        """Remember findings about files."""
        if self._start is not None:
            self._diagnostics += event.diagnostics

    def on_trial_result(self, event: TrialDone) -> None:
        """Take note of a trial that failed or broke."""
        if self._start is not None:
            item = event.item
            self._findings.add((item.eval_index, item.stimulus.name), event.result, event.passed)

    def on_run_complete(self, event: RunComplete) -> None:
        """Print the annotations and append to the summary of the step."""
        if self._start is None:
            return
        flags = self._start.options.flags
        if not flags.get("no-annotations"):
            made = Annotations(self._start).lines(self._findings, event.summary, self._diagnostics)
            _print("".join(f"{line}\n" for line in made))
        path = self._start.environ.get("GITHUB_STEP_SUMMARY")
        if path and not flags.get("no-step-summary"):
            problem = append_step_summary(path, summary_text(self._start, event.summary, self._findings))
            if problem:
                print_warning(f"the step summary was not written: {problem}")


def _print(text: str) -> None:
    # One piece, so that no other line gets between; without a reader of stderr nothing is lost but the annotations.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(fit_glyphs(text, sys.stderr))
        sys.stderr.flush()
