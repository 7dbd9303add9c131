"""Feeding reporters: order, isolation of failures, and slow ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from vally import PluginHost, ReporterSpec
from vally.run.reporters import QUEUE_LIMIT, ReporterBoard, active_reporters


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_trial_result(self, event: Any) -> None:
        self.seen.append(event)

    def on_run_complete(self, event: Any) -> dict[str, Path]:
        self.seen.append("complete")
        return {"Own": Path("own.txt")}


class AsyncRecorder(Recorder):
    async def on_trial_result(self, event: Any) -> None:  # type: ignore[override]  # both forms are allowed
        await anyio.sleep(0)
        self.seen.append(event)


class Failing(Recorder):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def on_trial_result(self, event: Any) -> None:
        super().on_trial_result(event)
        raise self._error


class Slow(Recorder):
    def on_trial_result(self, event: Any) -> None:
        time.sleep(0.05)
        super().on_trial_result(event)


def board(
    *reporters: Any,
    failures: list[tuple[str, Exception]] | None = None,
    blocking: bool = True,
    notices: Mapping[int, float] = MappingProxyType({}),
) -> ReporterBoard:
    kept = [] if failures is None else failures
    records = [
        ReporterSpec(
            name=f"r{index}",
            summary="a test reporter",
            factory=returning(item),
            blocking=blocking,
            notice_s=notices.get(index, 0.0),
        )
        for index, item in enumerate(reporters)
    ]
    host = PluginHost.from_objects(*records)
    return ReporterBoard(active_reporters(host, {}, lambda name, error: kept.append((name, error))))


def returning(value: Any) -> Callable[[], Any]:
    return lambda: value


def feed(target: ReporterBoard, events: list[Any]) -> dict[str, Path]:
    async def main() -> dict[str, Path]:
        async with anyio.create_task_group() as group:
            for item in target.feeds:
                group.start_soon(item.run)
            for event in events:
                await target.send("on_trial_result", event)
            return await target.finish(lambda named: dict(named), lambda _: None)

    return anyio.run(main)


@pytest.mark.parametrize("kind", [Recorder, AsyncRecorder])
@pytest.mark.parametrize("blocking", [True, False])
def test_every_reporter_sees_all_events_in_order(kind: type[Recorder], blocking: bool) -> None:
    first, second = kind(), Recorder()
    artifacts = feed(board(first, second, blocking=blocking), list(range(50)))
    assert first.seen == second.seen == [*range(50), "complete"]
    assert artifacts == {"Own": Path("own.txt")}


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(2)])
def test_a_failing_reporter_is_disabled_and_the_others_go_on(error: BaseException) -> None:
    failures: list[tuple[str, Exception]] = []
    broken, good = Failing(error), Recorder()
    feed(board(broken, good, failures=failures), [1, 2, 3])
    assert broken.seen == [1]
    assert good.seen == [1, 2, 3, "complete"]
    assert [name for name, _ in failures] == ["r0"]


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (5, "on_run_complete returned int, not a mapping from label to path"),
        ([("A", "a.txt")], "on_run_complete returned list, not a mapping from label to path"),
        ({"A": 5}, "on_run_complete returned int for 'A', not a path"),
    ],
)
def test_what_is_no_mapping_to_paths_is_told_in_words(named: Any, told: str) -> None:
    class Wrong:
        def on_run_complete(self, event: Any) -> Any:
            return named

    failures: list[tuple[str, Exception]] = []
    assert feed(board(Wrong(), Recorder(), failures=failures), []) == {"Own": Path("own.txt")}
    assert [str(error) for _, error in failures] == [told]


def test_a_reporter_that_cannot_be_made_is_reported_and_left_out() -> None:
    def broken() -> object:
        raise RuntimeError("cannot start")

    failures: list[tuple[str, Exception]] = []
    host = PluginHost.from_objects(ReporterSpec(name="r", summary="a test reporter", factory=broken))
    assert active_reporters(host, {}, lambda name, error: failures.append((name, error))) == []
    assert failures[0][0] == "r"


def test_a_slow_reporter_delays_nobody_until_its_queue_is_full() -> None:
    slow, quick = Slow(), Recorder()
    target = board(slow, quick)
    sent: list[float] = []

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for item in target.feeds:
                group.start_soon(item.run)
            started = time.monotonic()
            for number in range(20):
                await target.send("on_trial_result", number)
            sent.append(time.monotonic() - started)
            await target.finish(lambda named: named, lambda _: None)

    anyio.run(main)
    assert sent[0] < 0.5
    assert slow.seen == quick.seen == [*range(20), "complete"]


def test_a_full_queue_makes_results_wait_and_drops_phases() -> None:
    recorder = Recorder()
    recorder.on_trial_phase = recorder.seen.append  # type: ignore[attr-defined]
    target = board(recorder)

    async def main() -> None:
        for number in range(QUEUE_LIMIT):
            await target.send("on_trial_result", number)
        target.send_nowait("on_trial_phase", "dropped")
        with anyio.move_on_after(0.05) as waiting:
            await target.send("on_trial_result", "waits")
        assert waiting.cancelled_caught
        async with anyio.create_task_group() as group:
            group.start_soon(target.feeds[0].run)
            await target.send("on_trial_result", "last")
            await target.finish(lambda named: named, lambda _: None)

    anyio.run(main)
    assert "dropped" not in recorder.seen
    assert recorder.seen == [*range(QUEUE_LIMIT), "last", "complete"]


def test_a_reporter_with_an_option_needs_it() -> None:
    record = ReporterSpec(name="extra", summary="a test reporter", factory=Recorder, option="extra")
    host = PluginHost.from_objects(record)
    fail = pytest.fail
    assert active_reporters(host, {}, lambda *_: fail("must be made")) == []
    assert len(active_reporters(host, {"extra": True}, lambda *_: fail("must be made"))) == 1


def test_a_reporter_of_certain_runs_is_told_of_no_others() -> None:
    records = [
        ReporterSpec(name="every", summary="a test reporter", factory=Recorder),
        ReporterSpec(name="some", summary="a test reporter", factory=Recorder, kinds=("eval", "experiment")),
    ]

    def of(kind: str) -> list[str]:
        host = PluginHost.from_objects(*records)
        return [item.record.name for item in active_reporters(host, {}, lambda *_: None, kind=kind)]

    assert [of(kind) for kind in ("eval", "experiment", "grade")] == [["every", "some"], ["every", "some"], ["every"]]


def test_reporters_are_called_in_the_order_of_their_records() -> None:
    records = [
        ReporterSpec(name=name, summary="a test reporter", factory=Recorder, order=order)
        for name, order in (("a", 30), ("b", 10), ("c", 20))
    ]
    feeds = active_reporters(PluginHost.from_objects(*records), {}, lambda *_: None)
    assert [item.record.name for item in feeds] == ["b", "c", "a"]


def test_who_is_waited_for_at_the_end_is_told() -> None:
    class Unfinished:
        def on_trial_result(self, event: Any) -> None:
            raise AssertionError("gets nothing")

    waited: list[str] = []
    target = board(Recorder(), Unfinished(), Slow(), notices={2: 30.0})

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for item in target.feeds:
                group.start_soon(item.run)
            await target.finish(lambda named: named, waited.append)

    anyio.run(main)
    assert waited == ["r0"]


def test_a_reporter_that_takes_long_at_the_end_is_told_too() -> None:
    class Lingering:
        def on_run_complete(self, event: Any) -> None:
            end = time.monotonic() + 30
            while not waited and time.monotonic() < end:
                time.sleep(0.01)

    waited: list[str] = []
    target = board(Lingering(), notices={0: 0.05})

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(target.feeds[0].run)
            await target.finish(lambda named: named, waited.append)

    anyio.run(main)
    assert waited == ["r0"]
