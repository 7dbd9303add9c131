"""The lines of an oracle run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally import cells, cut_to_cells, name_line, one_line, pad, printable
from vally_command_oracle.gradable import label

if TYPE_CHECKING:
    from vally import GraderResult, Style
    from vally_command_oracle.results import Case, OracleResult

_EVIDENCE_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleLayout:
    """How the lines are laid out; with `several` evals each line names its own. `width` is None off terminals."""

    style: Style
    name_width: int
    input_width: int
    several: bool
    verbose: bool
    width: int | None

    @classmethod
    def of(
        cls, cases: Sequence[Case], style: Style, *, baseline: bool, verbose: bool, width: int | None
    ) -> OracleLayout:
        """Columns that fit all cases."""
        several = len({case.spec.display_path for case in cases}) > 1
        return cls(
            style=style,
            name_width=max(cells(_name(case, several)) for case in cases),
            input_width=max(cells(input_words(case, baseline)) for case in cases),
            several=several,
            verbose=verbose,
            width=width,
        )

    def lines(self, result: OracleResult, *, skip_grade: bool) -> Iterator[str]:
        """The line of a stimulus, and one for each grader that is not as it should be."""
        trial, case = result.trial, result.case
        name = pad(_name(case, self.several), self.name_width)
        what = pad(input_words(case, result.baseline), self.input_width)
        if trial.status == "error":
            yield f"{self._glyph('⚠')} {name}   {what}   error: {one_line(trial.error or 'unknown error')}"
            return
        if trial.status == "skipped":
            yield f"{self._glyph('○')} {name}   {what}   not run: {one_line(trial.skip_reason or 'no reason given')}"
            return
        glyph = "✘" if not result.passed else "○" if result.not_applicable else "✔"
        words = "applied" if skip_grade else ", ".join(_counts(result))
        yield f"{self._glyph(glyph)} {name}   {what}   {words}"
        if self.verbose:
            yield from (self._grader("✔" if grade.passed else "✘", label(entry), grade) for entry, grade in result.kept)
        else:
            yield from (self._grader("✘", item, grade) for item, grade in result.failing)
            yield from (self._grader("✘", item, grade) for item, grade in result.trivial)
            yield from (self._grader("⚠", item, grade) for item, grade in result.erring)

    def _glyph(self, glyph: str) -> str:
        return self.style.glyph(glyph)

    def _grader(self, glyph: str, name: str, grade: GraderResult) -> str:
        head = f"    {self._glyph('⚠' if grade.status == 'error' else glyph)} {name_line(name)}  "
        evidence = one_line(grade.evidence)
        # What kept a grader from a verdict stands at the end of its evidence.
        if self.verbose or grade.status == "error":
            return head + printable(evidence)
        room = _EVIDENCE_LIMIT if self.width is None else max(self.width - 8 - cells(name_line(name)), 20)
        return head + cut_to_cells(evidence, room)


def input_words(case: Case, baseline: bool) -> str:
    """`golden patch`, or `baseline` when it is withheld."""
    return "baseline" if baseline else f"golden {case.golden.kind.replace('+', ' + ')}"


def _name(case: Case, several: bool) -> str:
    return name_line(f"{case.spec.name} / {case.stimulus.name}" if several else case.stimulus.name)


def _counts(result: OracleResult) -> Iterator[str]:
    if result.graded:
        verb = "failed" if result.baseline else "passed"
        yield f"{result.counted}/{result.graded} graders {verb}"
    else:
        yield "no grader to control" if result.passed else "no grader can be graded"
    if result.trivial:
        yield f"trivially passing: {', '.join(name_line(name) for name, _ in result.trivial)}"
    if result.not_applicable:
        reasons = "; ".join(f"{name_line(name)}: {reason}" for name, reason in result.not_applicable)
        yield f"{len(result.not_applicable)} n/a ({reasons})"
