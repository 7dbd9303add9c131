"""Size limits of records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vally.run.limits import LINE_LIMIT, FittedRecord, clip_message, clip_text, fit_trial_record

KIB = 1024


def _record(events: list[dict[str, Any]], **trajectory: Any) -> dict[str, Any]:
    return {
        "type": "trial-result",
        "runId": "r",
        "trajectory": {"id": "t", "events": events, "output": "o", **trajectory},
        "gradeResult": None,
    }


def _fit(events: list[dict[str, Any]], **trajectory: Any) -> FittedRecord:
    return fit_trial_record(_record(events, **trajectory), "e/s/m/0/trajectory.json")


def _result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "data": {"toolName": "t", "result": text}}


@pytest.mark.parametrize("size", [300 * KIB], ids=["TR-1"])
def test_a_long_tool_result(size: int) -> None:
    events = [_result("a" * (size - 1) + "z")]
    fitted = _fit(events)
    trajectory = json.loads(fitted.line)["trajectory"]
    text = trajectory["events"][0]["data"]["result"]
    assert text == "a" * 192 * KIB + "…[45056 bytes omitted]…" + "a" * (64 * KIB - 1) + "z"
    assert trajectory["truncated"] is True
    assert trajectory["trajectoryPath"] == "e/s/m/0/trajectory.json"
    assert list(trajectory) == ["id", "events", "output", "truncated", "trajectoryPath"]
    assert fitted.full_trajectory == {"id": "t", "events": events, "output": "o"}
    assert fitted.record["trajectory"] == trajectory


@pytest.mark.parametrize("shift", [1, 2, 3], ids=["TR-2a", "TR-2b", "TR-2c"])
def test_a_cut_inside_a_character(shift: int) -> None:
    text = "x" * shift + "\U0001f600" * (80 * KIB)
    cut = clip_text(text, 256 * KIB)
    head, _, rest = cut.partition("…[")
    count, _, tail = rest.partition(" bytes omitted]…")
    assert set(head) <= {"x", "\U0001f600"}
    assert set(tail) == {"\U0001f600"}
    assert len(head.encode()) + len(tail.encode()) + int(count) == len(text.encode())
    assert len(head.encode()) <= 192 * KIB


@pytest.mark.parametrize(
    ("count", "size", "kind"),
    [
        pytest.param(160, 256 * KIB, "tool_result", id="TR-3"),
        pytest.param(2_000, 20 * KIB, "tool_result", id="many middling"),
        pytest.param(36_000, 200, "tool_result", id="many short"),
        pytest.param(36_000, 200, "reasoning", id="thoughts"),
    ],
)
def test_a_line_has_at_most_8_mib(count: int, size: int, kind: str) -> None:
    events = [{"type": kind, "data": {"n": index, "result": "é" * (size // 2)}} for index in range(count)]
    fitted = _fit(events)
    assert len(fitted.line) <= LINE_LIMIT
    assert len(fitted.line) > LINE_LIMIT // 8
    assert fitted.line.count(b"\n") == 1
    trajectory = json.loads(fitted.line)["trajectory"]
    assert trajectory["truncated"] is True
    assert trajectory["events"][0]["type"] == kind
    assert trajectory["events"][-1]["type"] == kind
    assert fitted.full_trajectory is not None
    assert len(fitted.full_trajectory["events"]) == count


def test_the_longest_texts_are_cut_first() -> None:
    long, short = "l" * 200 * KIB, "s" * 100 * KIB
    events = [_result(short), *[_result(long)] * 41]
    texts = [event["data"]["result"] for event in json.loads(_fit(events).line)["trajectory"]["events"]]
    assert texts[0] == short
    assert sum(len(text) < 20 * KIB for text in texts) == 1


def test_then_thoughts_are_emptied_oldest_first() -> None:
    events = [
        {"type": "reasoning" if index % 2 else "tool_result", "data": {"content": "c" * 900}} for index in range(11_000)
    ]
    kept = json.loads(_fit(events).line)["trajectory"]["events"]
    assert len(kept) == 11_000
    emptied = [index for index, event in enumerate(kept) if event["data"] == {"omitted": True}]
    assert emptied
    assert emptied == [index for index in range(emptied[-1] + 1) if index % 2]
    assert emptied[-1] < 10_000


def test_then_events_in_the_middle_are_replaced_by_one() -> None:
    events = [{"type": "tool_result", "data": {"n": index, "x": "y" * 900}} for index in range(12_000)]
    kept = json.loads(_fit(events).line)["trajectory"]["events"]
    (middle,) = [index for index, event in enumerate(kept) if event["type"] == "custom"]
    stand_in = kept[middle]["data"]
    assert stand_in == {"eventType": "events_omitted", "count": 12_000 - len(kept) + 1}
    assert kept[middle - 1]["data"]["n"] == middle - 1
    assert kept[middle + 1]["data"]["n"] == middle + stand_in["count"]
    assert abs(middle - (len(kept) - middle)) < 50


def test_parts_other_than_events_do_not_break_the_limit() -> None:
    record = _record([], stimulus={"prompt": "p" * 6_000_000}, junk=["j" * 3_000_000] * 3)
    record["gradeResult"] = {"metadata": {"raw": "g" * 9_000_000}}
    fitted = fit_trial_record(record, "p")
    assert len(fitted.line) <= LINE_LIMIT
    assert len(record["gradeResult"]["metadata"]["raw"]) == 9_000_000


def test_a_long_output_keeps_more() -> None:
    fitted = _fit([], output="o" * 2_000_000)
    output = json.loads(fitted.line)["trajectory"]["output"]
    assert output.index("…") == 768 * KIB
    assert output.endswith("…" + "o" * 256 * KIB)
    assert fitted.full_trajectory is not None


def test_nested_texts_and_only_long_ones_are_cut() -> None:
    arguments = {"deep": [{"text": "d" * 300 * KIB}], "short": "s" * 256 * KIB}
    fitted = _fit([{"type": "tool_call", "data": {"arguments": arguments}}])
    cut = json.loads(fitted.line)["trajectory"]["events"][0]["data"]["arguments"]
    assert len(cut["deep"][0]["text"]) < 260 * KIB
    assert cut["short"] == arguments["short"]
    assert len(arguments["deep"][0]["text"]) == 300 * KIB  # type: ignore[index]


def test_a_record_within_the_limits_stays_as_it_is() -> None:
    record = _record([_result("r" * 256 * KIB)], metrics={"a": 1.5})
    fitted = fit_trial_record(record, "p")
    assert fitted.record == record
    assert json.loads(fitted.line) == record
    assert fitted.full_trajectory is None


def test_records_without_trajectory() -> None:
    record = {"type": "trial-result", "trajectory": None, "error": "e" * 5000}
    fitted = fit_trial_record(record, "p")
    assert len(fitted.record["error"].encode()) < 4200
    assert fitted.full_trajectory is None


def test_messages_are_cut_at_their_end() -> None:
    record = {
        **_record([]),
        "error": "é" * 3000,
        "errorInfo": {"message": "m" * 5000, "code": "c"},
        "warnings": ["short", "w" * 5000],
    }
    fitted = fit_trial_record(record, "p")
    assert fitted.record["error"] == "é" * 2048 + "…[1904 bytes omitted]…"
    assert fitted.record["errorInfo"] == {"message": "m" * 4096 + "…[904 bytes omitted]…", "code": "c"}
    assert fitted.record["warnings"] == ["short", "w" * 4096 + "…[904 bytes omitted]…"]
    assert clip_message(fitted.record["error"]) == fitted.record["error"]


@pytest.mark.parametrize(("count", "size"), [(1, 300 * KIB), (100, 256 * KIB), (40_000, 200)])
def test_what_was_cut_is_not_cut_again(count: int, size: int) -> None:
    once = _fit([_result("x" * size)] * count)
    twice = fit_trial_record(json.loads(once.line), "elsewhere/trajectory.json")
    assert twice.line == once.line
    assert twice.full_trajectory is None
