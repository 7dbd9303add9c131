"""Workflow commands for what a run found, each at the place of its stimulus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import name_line, plural, printable, stimulus_stats, two_decimals, workflow_command, workflow_path
from vally_reporter_github.findings import MAX_SHOWN, Findings

if TYPE_CHECKING:
    from vally import Diagnostic, PlannedEval, RunStart, RunSummary


class Annotations:
    """Makes the annotations of a run: at most ten errors and ten warnings."""

    def __init__(self, start: RunStart) -> None:
        self._evals = start.evals
        self._workspace = start.environ.get("GITHUB_WORKSPACE")
        self._require_pass = start.options.require_pass

    def lines(self, findings: Findings, summary: RunSummary, diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
        """The commands, errors first."""
        errors = [self._error(*error.key, error.text) for error in findings.errors()]
        failing = list(self._failing(findings, summary))
        if self._require_pass:
            errors += failing
            failing = []
        warnings = [*failing, *(self._diagnostic(item) for item in diagnostics if item.level == "warning")]
        yield from errors[:MAX_SHOWN]
        yield from warnings[:MAX_SHOWN]

    def _error(self, index: int, stimulus: str, text: str) -> str:
        return self._at(self._evals[index], stimulus, "error", text)

    def _at(self, planned: PlannedEval, stimulus: str, level: str, text: str) -> str:
        line = next((part.line for part in planned.stimuli if part.name == stimulus), None)
        file = planned.eval_file_path if planned.source is None else workflow_path(planned.source, self._workspace)
        title = f"{name_line(planned.name)} / {name_line(stimulus)}"
        return workflow_command(level, text, file=file, line=line, title=title)

    def _failing(self, findings: Findings, summary: RunSummary) -> Iterator[str]:
        planned = {(item.eval_file_path, item.variant, item.model): item for item in self._evals}
        level = "error" if self._require_pass else "warning"
        for item in summary.evals:
            evaluation = planned.get((item.eval_file_path, item.variant, item.model))
            if evaluation is None:
                continue
            for stats in stimulus_stats(item):
                if stats.get("verdict") == "fail":
                    name = str(stats.get("name"))
                    text = _failure(stats, self._which(evaluation), findings.why((evaluation.index, name)))
                    yield self._at(evaluation, name, level, text)

    def _which(self, planned: PlannedEval) -> str:
        """What tells this eval from others of the same file."""
        model = f" with {name_line(planned.model)}" if len({item.model for item in self._evals}) > 1 else ""
        variant = f" in {name_line(planned.variant)}" if len({item.variant for item in self._evals}) > 1 else ""
        return model + variant

    def _diagnostic(self, item: Diagnostic) -> str:
        text = f"{item.message} [{item.code}]" + (f"\n{item.hint}" if item.hint else "")
        file = None if item.file is None else self._diagnosed(item.file)
        return workflow_command(
            item.level, printable(text), file=file, line=item.line if file else None, title=item.code
        )

    def _diagnosed(self, file: str) -> str:
        # Findings name files as records do, so the directory of that spelling is known from any eval.
        for planned in self._evals:
            base = _base(planned)
            if base is not None and (base / file).is_file():
                return workflow_path(base / file, self._workspace)
        return file


def _base(planned: PlannedEval) -> Path | None:
    if planned.source is None:
        return None
    shown = Path(planned.eval_file_path).parts
    if planned.source.parts[-len(shown) :] != shown:
        return None
    return planned.source.parents[len(shown) - 1]


def _failure(stats: Any, which: str, why: str) -> str:
    trials = int(stats.get("trials") or 0)
    score = stats.get("score")
    scored = "" if score is None else f", score {two_decimals(float(score))}"
    text = f"{int(stats.get('passed') or 0)} of {plural(trials, 'trial')} passed{scored}{which}"
    return f"{text}\n{why}" if why else text
