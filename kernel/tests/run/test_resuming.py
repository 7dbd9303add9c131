"""The results file of a run that is continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally.run.results_file import ResultsFile, index_results
from vally.run.resuming import restart_results, results_to_resume


def _line(item: str, **fields: Any) -> bytes:
    return json.dumps({"type": "trial-result", "itemId": item, **fields}).encode() + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@pytest.mark.parametrize("links", [True, False])
def test_a_resumed_run_keeps_the_former_file(path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr("os.link", _no_link)
    former = _line("a", spaced={"x": 1.50}) + _line("b") + b'{"torn'
    path.write_bytes(former)
    index = index_results(path)
    restart_results(path, [raw for raw in index.raw_lines() if b'"a"' in raw])
    with ResultsFile(path) as file:
        file.append(_line("b", again=True))
    assert path.read_bytes() == _line("a", spaced={"x": 1.50}) + _line("b", again=True)
    assert (path.parent / "results.jsonl.prev").read_bytes() == former
    assert len(list(path.parent.iterdir())) == 2


def _no_link(*_: object) -> None:
    raise OSError("hard links are not supported")


def test_a_failed_restart_changes_nothing(path: Path) -> None:
    path.write_bytes(_line("a"))

    def kept() -> Any:
        yield _line("a")[:-1]
        raise OSError("cannot read")

    with pytest.raises(OSError, match="cannot read"):
        restart_results(path, kept())
    assert [(found.name, found.read_bytes()) for found in path.parent.iterdir()] == [("results.jsonl", _line("a"))]


def test_the_file_to_resume_from(path: Path) -> None:
    previous = path.with_name("results.jsonl.prev")
    assert results_to_resume(path) == path
    previous.touch()
    assert results_to_resume(path) == previous
    path.touch()
    assert results_to_resume(path) == path


def test_a_restart_from_the_former_file_alone(path: Path) -> None:
    previous = path.with_name("results.jsonl.prev")
    previous.write_bytes(_line("a"))
    restart_results(path, index_results(results_to_resume(path)).raw_lines())
    assert path.read_bytes() == previous.read_bytes() == _line("a")


def _items(count: int) -> list[Any]:
    from vally.testing import stimulus, trial_item

    made = stimulus(name="s")
    return [trial_item(Path("/project"), made, trial_index=index) for index in range(count)]


def test_a_file_torn_at_any_byte_loses_only_what_was_torn(path: Path) -> None:
    from vally.run.resuming import keep_records
    from vally.run.run_dir import RunDirectory

    items = _items(3)
    ids = [item.item_id for item in items]
    lines = [
        _line(ids[0], status="success"),
        _line(ids[1], status="error"),
        _line(ids[2], status="success", t="\u00fc"),
    ]
    whole = b"".join(lines)
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = keep_records({"": RunDirectory(path.parent)}, items, "2026-07-24T01:00:00.000Z")
        # A last line without its end still counts when it is whole.
        stays = [
            line for index, line in enumerate(lines) if index != 1 and cut >= len(b"".join(lines[: index + 1])) - 1
        ]
        assert path.read_bytes() == b"".join(stays), cut
        assert [kept.place(item) is not None for item in items] == [
            any(line.startswith(b'{"type": "trial-result", "itemId": "' + item.encode()) for line in stays)
            for item in ids
        ]
        for item in items:
            place = kept.place(item)
            assert place is None or place.read() + b"\n" in stays
        assert path.with_name("results.jsonl.prev").read_bytes() == whole[:cut]


@pytest.mark.parametrize(
    ("record", "final"),
    [
        ({"status": "success"}, True),
        ({"status": "error"}, False),
        ({"status": "skipped", "skipReason": "not for me"}, True),
        ({"status": "skipped", "skipReason": "cancelled"}, False),
        ({"status": "skipped", "skipReason": "fail-fast"}, False),
        ({"status": "skipped", "skipReason": "budget"}, False),
        ({}, False),
    ],
)
def test_which_records_stay(record: dict[str, Any], final: bool) -> None:
    from vally.run.resuming import stays

    assert stays(record) is final


def _earlier(path: Path, lines: bytes) -> int:
    from vally.run.resuming import keep_records
    from vally.run.run_dir import RunDirectory

    path.write_bytes(lines)
    return keep_records({"": RunDirectory(path.parent)}, _items(3), "2026-07-24T01:00:00.000Z").duration_ms


def _ran(number: int, started: str, duration: int, status: str = "success") -> bytes:
    return _line(_items(3)[number].item_id, status=status, startedAt=started, durationMs=duration)


def test_earlier_attempts_count_in_the_duration_without_the_pause_between_them(path: Path) -> None:
    lines = (
        _ran(1, "2026-07-24T01:00:02.100Z", 400)
        + _ran(0, "2026-07-24T01:00:02.000Z", 300)
        + _ran(2, "2026-07-25T09:00:00.000Z", 1000, "error")
    )
    assert _earlier(path, lines) == 1500


def test_an_attempt_that_was_closed_says_how_long_it_and_those_before_it_took(path: Path) -> None:
    lines = _ran(0, "2026-07-24T01:00:02.000Z", 300) + _ran(1, "2026-07-25T09:00:00.000Z", 1000)
    assert _earlier(path, lines + b'{"type":"run-summary","durationMs":2345}\n') == 2345


def test_records_without_times_took_no_time(path: Path) -> None:
    assert _earlier(path, _line(_items(3)[0].item_id, status="success", durationMs="long", startedAt="once")) == 0
    begun = "2026-07-24T01:00:02.000Z"
    assert _earlier(path, _line(_items(3)[0].item_id, status="success", durationMs="long", startedAt=begun)) == 0
