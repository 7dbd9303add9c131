"""Large runs and large texts: the page stays small and says what it leaves out."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally.testing import ScriptedRun, event, trajectory, trial_result
from vally_reporter_html.charts import MAX_POINTS, scatter
from vally_reporter_html.diffs import MAX_LINES, parse_diff
from vally_reporter_html.facts import TrialFacts
from vally_reporter_html.reporter import HtmlReporter
from vally_reporter_html.selection import FULL_BYTES, MAX_LISTED, PER_TRIAL_BYTES, Level, select
from vally_reporter_html.text import cut, milliseconds, name, value
from vally_reporter_html.timeline import MAX_STEPS, timeline

Make = Callable[..., Any]


def test_everything_of_a_small_run_is_shown() -> None:
    chosen = select([((0, 0, index), False, 10_000) for index in range(100)])
    assert {chosen.level((0, 0, index)) for index in range(100)} == {Level.FULL}
    assert (chosen.total, chosen.brief, chosen.cells) == (100, 0, 0)


def test_trials_that_failed_come_first() -> None:
    trials = [((0, stimulus, index), index == 3, 400_000) for stimulus in range(100) for index in range(4)]
    chosen = select(trials)
    full = [key for key, _, _ in trials if chosen.level(key) is Level.FULL]
    assert len(full) == FULL_BYTES // (PER_TRIAL_BYTES + 3_000)
    assert all(index == 3 for _, _, index in full)
    assert chosen.brief == 400 - len(full)


def test_there_are_places_for_so_many_trials_only() -> None:
    chosen = select([((0, index // 10, index % 10), False, 100) for index in range(5_000)])
    assert sum(chosen.level((0, i // 10, i % 10)) is not Level.CELL for i in range(5_000)) == MAX_LISTED
    assert chosen.cells == 5_000 - MAX_LISTED
    # The first trials of all stimuli, rather than all trials of the first.
    assert chosen.level((0, 499, 0)) is not Level.CELL
    assert chosen.level((0, 0, 9)) is Level.CELL


def test_the_page_says_what_it_leaves_out(report: Make, grader: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vally_reporter_html.selection.MAX_LISTED", 5)
    monkeypatch.setattr("vally_reporter_html.selection.FULL_BYTES", 16_000)
    results = [trial_result("s", grader("g", index != 6), trial_index=index, total_trials=8) for index in range(8)]
    page = report(*results)
    (notice,) = page.words("p", "notice")
    assert notice == (
        "To keep this file small it shows 2 trials without timeline, output and diff and 3 trials as cells of the "
        "matrix only, of 8; trials that failed come first. Everything is in results.jsonl."
    )
    assert len(page.all("details", "trial")) == 5
    assert page.text.count("Timeline, output and diff are left out here") == 2
    assert [cell.tag for cell in page.elements if "cell" in cell.attributes.get("class", "").split()].count("span") == 3
    # The seventh trial failed, so it is one of those in full.
    assert "e0-s0-t6" in [e.attributes.get("id") for e in page.all("details", "trial")]


@pytest.mark.heavy
def test_five_thousand_trials(tmp_path: Path, grader: Make) -> None:
    chance = random.Random(7)
    said = trajectory(*(event("assistant_message", content="x" * 400) for _ in range(20)), output="o" * 3_000)
    results = [
        trial_result(
            f"stimulus {index // 10}", grader("g", chance.random() < 0.7, "e" * 200), trajectory=said,
            trial_index=index % 10, total_trials=10,
        )
        for index in range(5_000)
    ]  # fmt: skip
    run = ScriptedRun(tmp_path, results)
    events = list(run.events())
    del results
    reporter = HtmlReporter()
    reporter.on_run_start(events[0][1])
    complete = events[-1][1]
    del events
    tracemalloc.start()
    try:
        path = reporter.on_run_complete(complete)["HTML"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size < 25_000_000
    assert peak < 100_000_000


def test_long_texts_are_cut(report: Make, grader: Make) -> None:
    huge = "<" * 1_000_000
    steps = [event("assistant_message", content=huge) for _ in range(3)]
    steps += [event("tool_call", toolName=huge, toolCallId="c", arguments={"a": huge})]
    steps += [event("tool_result", toolName="t", toolCallId="c", success=True, result=huge)]
    done = trajectory(*steps, output=huge, diff="+" + huge).model_copy(update={"stimulus": {"turns": [huge] * 2}})
    page = report(trial_result("s", grader("g", False, huge), trajectory=done))
    assert len(page.text) < 500_000
    assert "980,000 more characters" in page.text


def test_deep_trees_of_graders_are_cut(report: Make, grader: Make) -> None:
    deep = grader("leaf")
    for level in range(60):
        deep = grader(f"level {level}", details=[deep])
    page = report(trial_result("s", deep))
    assert len(page.all("li", "grader")) == 8


def test_cuts_count_what_they_leave_out() -> None:
    assert cut("abc", 3).omitted == 0
    assert (cut("abcd", 3).text, cut("abcd", 3).omitted) == ("abc", 1)
    assert cut("\x00" * 10 + "abc", 5).text == "abc"
    assert value({"a": float("nan")}, 50).text == '{"a":null}'
    assert value(None, 5).text == ""
    assert name("\x1b[31m \n") == "(unnamed)"
    assert name("x" * 300) == "x" * 199 + "…"


def test_a_timeline_keeps_its_ends() -> None:
    made = timeline([event("assistant_message", content=str(index)) for index in range(1_000)])
    assert (len(made.head), made.omitted, len(made.tail)) == (200, 1_000 - MAX_STEPS, 100)
    assert (made.head[0].text.text, made.tail[-1].text.text) == ("0", "999")


def test_a_diff_is_cut_at_lines() -> None:
    diff = parse_diff("diff --git a/x b/x\n" + "+line\n" * 5_000)
    assert diff.files[0].added == MAX_LINES - 1
    assert diff.omitted == 5_001 - MAX_LINES


@pytest.mark.parametrize("text", ["", "\n", "+alone", "diff --git\n", "diff --git a/x b/x", "@@\n\n\n"])
def test_odd_diffs(text: str) -> None:
    assert parse_diff(text).omitted == 0


def test_the_plot_has_a_limit_and_shows_what_failed() -> None:
    def facts(index: int, verdict: Any) -> TrialFacts:
        return TrialFacts(index, verdict, 1.0, 100 + index, index, 1, 1, True)

    trials = [(facts(index, "fail" if index % 100 == 0 else "pass"), "t", "") for index in range(6_000)]
    plot = scatter(trials)
    assert plot is not None
    assert len(plot.points) <= MAX_POINTS
    assert sum(point.verdict == "fail" for point in plot.points) == 60
    assert plot.omitted == 6_000 - len(plot.points)
    assert scatter(trials[:2]) is None


def test_the_scales_of_the_plot_hold_every_point() -> None:
    for largest in (1, 3, 7, 99, 100, 101, 12_345, 10**9):
        trials = [(TrialFacts(i, "pass", 1.0, largest, largest * i, 1, 1, True), "t", "") for i in range(4)]
        plot = scatter(trials)
        assert plot is not None
        assert all(0 <= point.x <= 640 and 0 <= point.y <= 220 for point in plot.points)
        assert 2 <= len(plot.x_ticks) <= 6


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0ms"), (999, "999ms"), (999.6, "1.0s"), (59_949, "59.9s"), (60_000, "1m00s"), (3_599_600, "1h00m")],
)
def test_durations(number: float, shown: str) -> None:
    assert milliseconds(number) == shown
