"""What `vally grade` prints for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from vally.cli.display import is_terminal
from vally.cli.messages import tell
from vally.cli.terminal import cut_to_cells, name_line, one_line, printable, report_block, report_width
from vally.run.scoring import resolve_grade_pass
from vally.run.verdict_words import is_ungraded
from vally.text.glyphs import can_encode, fit_glyphs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vally.model.results import EvalSummary, GraderResult
    from vally.run.regrading.work import Graded

EVIDENCE_LENGTH = 500
_STAND_INS = {"✅": "[ok]", "❌": "[FAIL]", "✓": "+"}


class GradeReport:
    """Prints a block per trial and a line per eval; on stderr when stdout carries records."""

    def __init__(self, environ: Mapping[str, str], *, on_stdout: bool, quiet: bool, verbose: bool) -> None:
        self._environ = environ
        self._on_stdout = on_stdout
        self._quiet = quiet
        self._verbose = verbose
        stream = sys.stdout if on_stdout else sys.stderr
        self._width = report_width(stream, environ) if is_terminal(stream) else None

    def trial(self, graded: Graded, threshold: float | None) -> None:
        """The block of one trial."""
        if not self._quiet:
            self._print([*self._block(graded, threshold), ""])

    def evals(self, summaries: Iterable[EvalSummary]) -> None:
        """The closing line of each eval."""
        found = list(summaries)
        self._print([_verdict(item, named=len(found) > 1) for item in found])

    def _print(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        stream = sys.stdout if self._on_stdout else sys.stderr
        if not can_encode(stream, "✅"):
            text = text.translate({ord(glyph): word for glyph, word in _STAND_INS.items()})
        block = report_block(f"{text}\n", self._environ)
        if not self._on_stdout:
            tell([block.removesuffix("\n")])
            return
        stream.write(fit_glyphs(block, stream))
        stream.flush()

    def _block(self, graded: Graded, threshold: float | None) -> Iterator[str]:
        item, grade = graded.item, graded.grade
        name = name_line(item.stimulus.name)
        trial = f" (trial {item.trial_index + 1}/{item.total_trials})" if item.total_trials > 1 else ""
        yield f"━━━ {name}{trial} ━━━"
        if graded.error is not None:
            yield f"⚠ {name}  {one_line(graded.error)}"
        elif graded.assigned.document.status is not None:
            yield f"○ {name}  not gradable: {_why(graded)}"
        elif grade is None:
            yield f"○ {name}  not graded: the stimulus has no graders"
        else:
            yield f"{_glyph(grade, threshold)} {name} ({one_line(grade.evidence)})"
            for detail in grade.details or ():
                yield from self._grader(detail)

    def _grader(self, result: GraderResult, depth: int = 1) -> Iterator[str]:
        glyph = "⚠" if result.status == "error" else "✓" if result.passed else "✗"
        label = result.configured_name or (result.grader_type if depth == 1 else None) or result.name
        start = f"{'  ' * depth}{glyph} [{name_line(label)}] "
        if self._verbose:
            first, *rest = printable(result.evidence).splitlines() or [""]
            yield start + first
            yield from (f"{'  ' * depth}    {line}" for line in rest)
            for detail in result.details or ():
                yield from self._grader(detail, depth + 1)
        else:
            evidence = one_line(result.evidence)
            # What kept a grader from a verdict stands at the end of its evidence.
            yield start + (evidence if result.status == "error" else self._cut(evidence, len(start)))

    def _cut(self, text: str, used: int) -> str:
        if self._verbose:
            return text
        if self._width is None:
            return text if len(text) <= EVIDENCE_LENGTH else f"{text[: EVIDENCE_LENGTH - 1]}…"
        return cut_to_cells(text, max(20, self._width - used))


def _glyph(grade: GraderResult, threshold: float | None) -> str:
    passed = resolve_grade_pass(grade, threshold)
    return "⚠" if passed is None else "✅" if passed else "❌"


def _why(graded: Graded) -> str:
    record = graded.record
    reason = one_line(str(record.get("error") or record.get("skipReason") or ""))
    status = f"status {graded.assigned.document.status}"
    return f"{status}: {reason}" if reason else status


def _verdict(summary: EvalSummary, *, named: bool) -> str:
    mean = ((summary.stats or {}).get("score") or {}).get("mean")
    score = "n/a" if mean is None else f"{_percent(mean)}%"
    word = "NOT GRADED" if is_ungraded(summary) else "PASSED" if summary.passed else "FAILED"
    name = f"{name_line(_eval_label(summary))}: " if named else ""
    return f"{name}Score: {score} | {word}"


def _eval_label(summary: EvalSummary) -> str:
    return summary.name or summary.eval_file_path


def _percent(share: float) -> str:
    """A share as a percentage of one decimal: the exact value rounded, exact ties upward."""
    tenths = (2 * Fraction(share) * 1000 + 1) // 2
    return f"{tenths // 10}.{tenths % 10}"
