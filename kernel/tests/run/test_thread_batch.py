"""Sync graders in threads: together while they are quick, side by side when one is not, in order where that matters."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from vally import GraderInput, GraderResult, GraderSpec, PluginHost, Scoring, Trajectory, grade_trajectory
from vally.run import thread_batch

Grade = Callable[[GraderInput[object]], GraderResult]
BUDGET = Scoring(timeout_ms=20_000, timeout_text="20s")
"""A budget keeps the library from calling graders in its own thread."""


def spec(name: str, grade: Grade, **facts: bool) -> GraderSpec:
    class Grader:
        def grade(self, input: GraderInput[object]) -> GraderResult:
            return grade(input)

    return GraderSpec(name=name, summary=name, factory=Grader, **facts)


def graded(*specs: GraderSpec, scoring: Scoring = BUDGET) -> list[GraderResult]:
    host = PluginHost.from_objects(*specs)
    result = grade_trajectory(Trajectory(), [{"type": item.name} for item in specs], host=host, scoring=scoring)
    assert result.details is not None
    return result.details


def test_quick_graders_share_one_thread() -> None:
    threads: list[threading.Thread] = []

    def here(_: object) -> GraderResult:
        threads.append(threading.current_thread())
        return GraderResult.verdict(True, "ok")

    assert all(result.passed for result in graded(*(spec(f"quick-{n}", here) for n in range(5))))
    assert len(set(threads)) == 1
    assert threads[0] is not threading.main_thread()


def test_a_grader_that_hangs_costs_no_other_its_verdict() -> None:
    released = threading.Event()

    def hangs(_: object) -> GraderResult:
        released.wait()
        return GraderResult.verdict(True, "late")

    def quick(_: object) -> GraderResult:
        return GraderResult.verdict(True, "ok")

    scoring = Scoring(timeout_ms=1500, timeout_text="1500ms")
    try:
        first, *others = graded(spec("hangs", hangs), *(spec(f"quick-{n}", quick) for n in range(3)), scoring=scoring)
    finally:
        released.set()
    assert first.evidence == "Grading timed out after 1500ms"
    assert (first.grader_type, (first.metadata or {})["error"]["kind"]) == ("hangs", "deadline")
    assert [result.evidence for result in others] == ["ok"] * 3


def test_graders_that_wait_for_each_other_are_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=15)

    def meets(_: object) -> GraderResult:
        meeting.wait()
        return GraderResult.verdict(True, "met")

    assert [result.evidence for result in graded(*(spec(f"meets-{n}", meets) for n in range(3)))] == ["met"] * 3


def test_a_thread_that_never_gets_to_begin_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_batch, "PATIENCE_S", 0)

    def quick(_: object) -> GraderResult:
        return GraderResult.verdict(True, "ok")

    assert [result.evidence for result in graded(spec("a", quick), spec("b", quick))] == ["ok", "ok"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError("big"), GeneratorExit()])
def test_whatever_a_grader_raises_in_a_thread_is_its_own_error(error: BaseException) -> None:
    def raises(_: object) -> GraderResult:
        raise error

    def quick(_: object) -> GraderResult:
        return GraderResult.verdict(True, "ok")

    failed, good = graded(spec("raises", raises), spec("quick", quick))
    assert failed.status == "error"
    assert failed.evidence.startswith("Grader execution error: ")
    assert good.passed


@pytest.mark.parametrize("scoring", [BUDGET, Scoring()], ids=["in a thread", "by a plain call"])
def test_a_sync_grade_may_return_something_to_await(scoring: Scoring) -> None:
    async def later() -> GraderResult:
        return GraderResult.verdict(True, "later")

    def returns(_: object) -> GraderResult:
        return later()  # type: ignore[return-value]  # what some wrappers do

    assert [result.evidence for result in graded(spec("a", returns), spec("b", returns), scoring=scoring)] == [
        "later",
        "later",
    ]


def test_graders_of_the_workspace_follow_each_other_however_long_one_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_batch, "PATIENCE_S", 0)
    at_work = threading.Lock()
    order: list[str] = []

    def alone(name: str) -> Grade:
        def grade(_: object) -> GraderResult:
            with_lock = at_work.acquire(blocking=False)
            order.append(name)
            threading.Event().wait(0.01)
            if with_lock:
                at_work.release()
            return GraderResult.verdict(with_lock, name)

        return grade

    names = ["one", "two", "three"]
    results = graded(*(spec(name, alone(name), requires_workspace=True) for name in names))
    assert order == names
    assert all(result.passed for result in results)


def test_a_plain_call_needs_no_thread() -> None:
    threads: list[threading.Thread] = []

    def here(_: object) -> GraderResult:
        threads.append(threading.current_thread())
        return GraderResult.verdict(True, "ok")

    assert graded(spec("quick", here), scoring=Scoring())[0].passed
    assert threads == [threading.current_thread()]


def test_graders_get_a_trajectory_that_they_may_spoil() -> None:
    trajectory = Trajectory.model_validate(
        {"events": [{"type": "tool_call", "data": {"toolName": "t", "arguments": {"a": {"b": [1]}}}}], "output": "x"}
    )
    before = trajectory.model_dump()

    def spoils(grader_input: GraderInput[object]) -> GraderResult:
        event = grader_input.trajectory.events[0]
        event.data["arguments"]["a"]["b"].append(2)
        event.data["arguments"]["c"] = 1
        event.data["toolName"] = event.agent_id = "other"
        grader_input.full_trajectory.events.clear()
        return GraderResult.verdict(True, "spoilt")

    host = PluginHost.from_objects(spec("spoils", spoils))
    assert grade_trajectory(trajectory, [{"type": "spoils"}], host=host).passed
    assert trajectory.model_dump() == before
