"""Texts of others: never markup, never a further column, never outside their fence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_markdown.reporter import MarkdownReporter

Report = Callable[..., str]
Grader = Callable[..., GraderResult]
HOSTILE = "a|b `c` *d* _e_ ~f~ [g](h) ![i] <script>&amp; \\ {j} $k$ #1\r\n| ✅ |\x1b[31m\x00\u202e\ud800\t::error::x"
ESCAPED = (
    "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\~f\\~ \\[g\\](h) \\!\\[i\\] &lt;script&gt;&amp;amp; \\\\ \\{j\\} \\$k\\$ \\#1 "
    "\\| ✅ \\|\ufffd ::error::x"
)


@pytest.fixture
def hostile(report: Report, grader: Grader) -> str:
    names = {"eval_name": HOSTILE, "eval_file_path": "eval.yaml", "model": HOSTILE}
    nested = grader(HOSTILE, False, HOSTILE, details=[grader(HOSTILE, None, HOSTILE)])
    return report(
        trial_result(HOSTILE, nested, **names),
        trial_result("e", status="error", error=HOSTILE, **names),
        trial_result("s", status="skipped", skip_reason=HOSTILE, **names),
        threshold=0.5,
    )


def columns(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line)


def test_cells_are_escaped(hostile: str) -> None:
    assert f"| {ESCAPED} | {ESCAPED} |" in hostile
    assert f"## {ESCAPED} ({ESCAPED})\n" in hostile
    assert f"### {ESCAPED}\n" in hostile
    assert f"❌ ERROR: {ESCAPED}\n" in hostile
    assert f"⏭️ SKIPPED: {ESCAPED}\n" in hostile
    assert f"- Model: {ESCAPED} · " in hostile


def test_every_row_has_as_many_cells_as_its_head(hostile: str) -> None:
    tables = [block.splitlines() for block in hostile.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 3
    for head, rule, *rows in tables:
        assert rows
        for row in rows:
            assert len(columns(row)) == len(columns(head)) == len(columns(rule))
            assert columns(row)[1].strip()
            assert re.match("✅|❌|⏭️", columns(row)[-2].strip())


def test_control_characters_are_removed(hostile: str) -> None:
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", hostile)


def test_names_of_nothing(report: Report, grader: Grader) -> None:
    text = report(trial_result("\x07", grader("\x1b[0m", evidence=" \n "), eval_name="\u202e", model="m"))
    assert "| – | m | 1.00 | – |" in text
    assert "## – (m)\n" in text
    assert "| – | 1/1 |" in text
    assert "### –\n" in text
    assert "| – | 1.00 |  | ✅ |" in text


@pytest.mark.parametrize(("length", "shown"), [(300, "e" * 300), (301, "e" * 299 + "…"), (5_000_000, "e" * 299 + "…")])
def test_cells_have_at_most_300_characters(report: Report, grader: Grader, length: int, shown: str) -> None:
    assert f"| g | 1.00 | {shown} | ✅ |\n" in report(trial_result("s", grader("g", evidence="e" * length)))


def test_characters_are_counted_before_they_are_escaped(report: Report, grader: Grader) -> None:
    assert f"| g | 1.00 | {'&lt;' * 300} | ✅ |\n" in report(trial_result("s", grader("g", evidence="<" * 300)))


def fence(report: Report, measured: Any, output: str) -> str:
    text = report(trial_result("s", trajectory=measured(output=output)))
    start = "<details><summary>Agent output</summary>\n\n"
    assert text.endswith("\n\n</details>\n")
    return text[text.index(start) + len(start) : -len("\n\n</details>\n")]


@pytest.mark.parametrize(
    ("output", "fences"),
    [("plain", "```"), ("a ` b `` c", "```"), ("```\n</details>\n```", "````"), ("x`````y", "``````")],
)
def test_the_fence_is_longer_than_any_run_of_backticks(report: Report, measured: Any, output: str, fences: str) -> None:
    assert fence(report, measured, output) == f"{fences}text\n{output}\n{fences}"


@pytest.mark.parametrize(("length", "shown"), [(2000, "o" * 2000), (2001, "o" * 1999 + "…")])
def test_the_output_has_at_most_2000_characters(report: Report, measured: Any, length: int, shown: str) -> None:
    assert fence(report, measured, "o" * length) == f"```text\n{shown}\n```"


def test_a_fence_counts_only_what_is_shown(report: Report, measured: Any) -> None:
    assert fence(report, measured, "o" * 2000 + "`" * 9).startswith("```text\n")


def test_the_output_keeps_its_lines(report: Report, measured: Any) -> None:
    output = "| a | b |\r\n\r\n<b>\ttab</b>\x1b[31m\x9b0m"
    assert fence(report, measured, output) == "```text\n| a | b |\n\n<b>\ttab</b>\n```"


def test_no_output_has_no_fence(report: Report, measured: Any) -> None:
    assert "<details>" not in report(trial_result("s", trajectory=measured(output=" \n ")))


def test_memory_holds_no_trajectories(tmp_path: Path, grader: Grader, measured: Any) -> None:
    import tracemalloc

    graders = [grader("g", False)]
    results = [trial_result(f"s{index}", *graders, trajectory=measured(output="o" * 200_000)) for index in range(50)]
    events = list(ScriptedRun(tmp_path, results).events())
    reporter = MarkdownReporter()
    reporter.on_run_start(events[0][1])
    tracemalloc.start()
    try:
        reporter.on_run_complete(events[-1][1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "run" / "results.jsonl").stat().st_size > 10_000_000
    assert peak < 5_000_000
