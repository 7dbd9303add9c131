"""One invocation of `vally runs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    DEFAULT_BACKEND,
    Style,
    UsageError,
    cells,
    elapsed,
    existing_directory,
    find_runs,
    fit_glyphs,
    name_line,
    name_matcher,
    newest_first,
    one_decimal,
    one_line,
    output_dirs,
    pad,
    plain_value,
    print_warning,
    report_block,
    run_place,
    timestamp,
    use_color,
    write_machine_output,
)
from vally_command_inspect_runs.run_facts import FAILED_VERDICTS, RunFacts, facts_of
from vally_command_inspect_runs.show import project_of, shown_path

if TYPE_CHECKING:
    from vally import CliContext

HEADINGS = ("STARTED", "RUN", "KIND", "EVALS", "TRIALS", "PASS RATE", "VERDICT", "DURATION", "BACKEND")
VERDICT = HEADINGS.index("VERDICT")
ABSENT = "–"
_COLORS = {"pass": "green", "fail": "red", "error": "yellow", "partial": "yellow"}
_MOST_EVALS = 40


def list_runs(context: CliContext, word: str | None, options: Mapping[str, Any]) -> int:
    """Print the list; returns the exit code. Raises `VallyError` when a named directory does not exist."""
    store = options["store"]
    if store is not None:
        if word is not None:
            raise UsageError("--store and a directory exclude each other")
        from vally_command_inspect_runs.store import open_store

        with open_store(store, context) as opened:
            return _print(opened.facts(), store, context, options)
    roots = _roots(context, word)
    where = ", ".join(shown_path(root, context.cwd) for root in roots)
    return _print(_facts(roots, context), where, context, options)


def _print(found: Iterable[RunFacts], where: str, context: CliContext, options: Mapping[str, Any]) -> int:
    matches = name_matcher(options["eval_glob"], "--eval") if options["eval_glob"] is not None else None
    rows: list[RunFacts] = []
    for facts in found:
        if matches is not None and not any(matches(name) for name in facts.evals):
            continue
        if options["failed"] and facts.verdict not in FAILED_VERDICTS:
            continue
        rows.append(facts)
        if len(rows) == options["limit"]:
            break
    if options["output"] == "json":
        write_machine_output(_document(rows, context) + "\n")
        return 0
    text = "".join(f"{line}\n" for line in _table(rows, where, context))
    sys.stdout.write(fit_glyphs(report_block(text, context.environ), sys.stdout))
    sys.stdout.flush()
    return 0


def _roots(context: CliContext, word: str | None) -> list[Path]:
    if word is None:
        return output_dirs(context, project_of(context))
    return [existing_directory(context.cwd, run_place(word, context, where="DIRECTORY"), "DIRECTORY")]


def _facts(roots: Sequence[Path], context: CliContext) -> Iterator[RunFacts]:
    """Facts of the runs below some directories, the newest first, each read when it is asked for."""
    for run in newest_first(run for root in roots for run in find_runs(root)):
        shown = shown_path(run.path, context.cwd)
        try:
            facts = facts_of(run)
        except OSError as error:
            print_warning(f"{shown}: cannot be read: {error.strerror or error}")
            continue
        if facts is None:
            print_warning(f"{shown}: results.jsonl is not of a run")
            continue
        for problem in facts.problems[:1]:
            more = len(facts.problems) - 1
            print_warning(f"{shown}: line {problem}" + (f", and {more} more" if more else ""))
        yield facts


def _table(rows: Sequence[RunFacts], where: str, context: CliContext) -> Iterator[str]:
    if not rows:
        yield f"no runs in {one_line(where)}"
        return
    style = Style(use_color(context.display.color, context.environ, sys.stdout))
    shown = len(HEADINGS) - all(facts.backend in (None, DEFAULT_BACKEND) for facts in rows)
    headings, table = HEADINGS[:shown], [_row(facts, context)[:shown] for facts in rows]
    widths = [max(cells(line[column]) for line in (headings, *table)) for column in range(shown)]
    yield style.paint(_aligned(headings, widths), "bold")
    for facts, line in zip(rows, table, strict=True):
        padded = [pad(cell, width) for cell, width in zip(line, widths, strict=True)]
        color = _COLORS.get(facts.verdict)
        if color:
            padded[VERDICT] = style.paint(padded[VERDICT], color)
        yield "  ".join(padded).rstrip()


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(facts: RunFacts, context: CliContext) -> tuple[str, ...]:
    rate = facts.pass_rate
    return (
        timestamp(facts.started)[:19].replace("T", " ") if facts.started else ABSENT,
        name_line(facts.shown or shown_path(facts.run.path, context.cwd)),
        one_line(facts.kind),
        _evals(facts.evals),
        str(facts.trials),
        ABSENT if rate is None else f"{one_decimal(100 * rate)}%",
        facts.verdict,
        ABSENT if facts.duration_ms is None else elapsed(facts.duration_ms),
        ABSENT if facts.backend is None else name_line(facts.backend),
    )


def _evals(names: Sequence[str]) -> str:
    if not names:
        return ABSENT
    shown = ", ".join(name_line(name) for name in names)
    if cells(shown) <= _MOST_EVALS:
        return shown
    return f"{len(names)} evals" if len(names) > 1 else shown


def _document(rows: Sequence[RunFacts], context: CliContext) -> str:
    runs = [
        {
            "startedAt": timestamp(facts.started) if facts.started else None,
            "runId": facts.id,
            "directory": shown_path(facts.run.path, context.cwd),
            "kind": facts.kind,
            "evals": facts.evals,
            "trials": facts.trials,
            "passRate": facts.pass_rate,
            "verdict": facts.verdict,
            "durationMs": facts.duration_ms,
            "backend": facts.backend,
        }
        for facts in rows
    ]
    document = plain_value({"type": "run-list", "version": 1, "runs": runs}).value
    return json.dumps(document, ensure_ascii=False)
