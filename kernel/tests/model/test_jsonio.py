"""JSON as records and hashes have it, and times."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest

from vally.model.jsonio import (
    canonical_json,
    content_hash,
    encode_document,
    encode_line,
    parse_json,
    parse_timestamp,
    plain_value,
    record_line,
    timestamp,
    without_surrogates,
)
from vally.model.results import TrialResult
from vally.model.trajectory import Event, Trajectory


@pytest.mark.parametrize(
    ("value", "canonical", "digest"),
    [
        pytest.param({"b": 1.0, "a": ["x", None]}, '{"a":["x",null],"b":1}', "51ea4a015bf57b32", id="CJ-1"),
        pytest.param({"s": '"\\\né', "n": 1.5}, '{"n":1.5,"s":"\\"\\\\\\né"}', "f3b273ca15acebb8", id="CJ-2"),
    ],
)
def test_canonical_json(value: object, canonical: str, digest: str) -> None:
    assert canonical_json(value) == canonical
    assert content_hash(value) == digest


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("\x00\x1f\b\t\f\r\x7f/", '"\\u0000\\u001f\\b\\t\\f\\r\x7f/"'),
        ({"\uffff": 1, "\U00010000": 2, "Z": 3, "a": 4}, '{"Z":3,"a":4,"\uffff":1,"\U00010000":2}'),
        ([1e21, 1e-7, 123456789012345680000, -0.0, True, False], "[1e+21,1e-7,123456789012345680000,0,true,false]"),
        (("a", MappingProxyType({"b": ()})), '["a",{"b":[]}]'),
        ("a\ud800b", '"a\ufffdb"'),
    ],
)
def test_canonical_details(value: object, canonical: str) -> None:
    assert canonical_json(value) == canonical


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf]])
def test_numbers_without_canonical_form(value: object) -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        canonical_json(value)


@pytest.mark.parametrize("value", [object(), {1: 2}])
def test_values_that_are_not_json(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


def test_lines_are_compact_and_keep_text() -> None:
    assert encode_line({"é": ["\u2028", "\n"]}) == '{"é":["\u2028","\\n"]}\n'.encode()


def test_documents_are_indented() -> None:
    assert encode_document({"a": [1.0]}) == b'{\n  "a": [\n    1\n  ]\n}\n'


class _Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (1.0, 1),
        (-0.0, 0),
        (0.1, 0.1),
        (1e300, 1e300),
        (2**70, 2**70),
        ((1, {2: 3, None: 4, True: 5}), [1, {"2": 3, "null": 4, "true": 5}]),
        (PurePosixPath("a/b"), "a/b"),
        ({"b", "a"}, ["a", "b"]),
        (b"\xff", "\ufffd"),
        (_Colour.RED, "red"),
        (Event(type="custom"), {"type": "custom", "data": {}}),
    ],
)
def test_plain_values(value: object, plain: object) -> None:
    found = plain_value(value)
    assert found.value == plain
    assert json.dumps(found.value) == json.dumps(plain)
    assert found.not_finite == ()


def test_numbers_that_become_null_are_named() -> None:
    found = plain_value({"a/b": [math.nan, {"c~": math.inf}], "big": 10**5000})
    assert found.value == {"a/b": [None, {"c~": None}], "big": None}
    assert found.not_finite == ("/a~1b/0", "/a~1b/1/c~0", "/big")


def test_what_is_nested_too_deeply_becomes_text() -> None:
    value: Any = "core"
    for _ in range(5000):
        value = [value]
    line = encode_line(plain_value(value).value)
    assert b"core" in line
    assert parse_json(line)


def test_a_hostile_trajectory_is_one_strict_line() -> None:
    trajectory = Trajectory(
        id="t",
        output="lone \ud800 surrogate",
        events=[
            Event(type="tool_call", data={"toolName": "x", "arguments": {"n": math.nan, "\udc00": "\u2028"}}),
            Event(type="tool_result", data={"result": "y" * 300 * 1024}),
        ],
    )
    line = record_line(_trial(trajectory))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    record = json.loads(line, parse_constant=pytest.fail)
    assert record["trajectory"]["output"] == "lone \ufffd surrogate"
    assert record["trajectory"]["events"][0]["data"]["arguments"] == {"n": None, "\ufffd": "\u2028"}
    assert record["warnings"] == [
        "the number at /trajectory/events/0/data/arguments/n is not finite and was recorded as null"
    ]


def test_many_warnings_are_summed_up() -> None:
    trajectory = Trajectory(events=[Event(type="custom", data={"values": [math.nan] * 50})])
    warnings = json.loads(record_line(_trial(trajectory)))["warnings"]
    assert len(warnings) == 21
    assert warnings[-1] == "30 more numbers are not finite and were recorded as null"


def _trial(trajectory: Trajectory) -> TrialResult:
    return TrialResult(
        run_id="r",
        item_id="i",
        eval_name="e",
        eval_file_path="e.yaml",
        stimulus="s",
        trial_index=0,
        total_trials=1,
        status="success",
        trajectory=trajectory,
    )


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'["\\ud83d\\ude00","\\ud800","\xff"]', ["\U0001f600", "\ufffd", "\ufffd"]),
        (b"[NaN,-Infinity,1e999]", [None, None, None]),
        (b"1" * 5000, None),
        (b"1.0", 1.0),
    ],
)
def test_reading_is_lenient(data: bytes, value: object) -> None:
    assert parse_json(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b'{"a":1} x'])
def test_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(data)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 7, 24, 1, 2, 3, 456_999, tzinfo=UTC), "2026-07-24T01:02:03.456Z"),
        (datetime(2026, 7, 24, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "2026-07-23T23:02:03.000Z"),
        (datetime(99, 1, 1, tzinfo=UTC), "0099-01-01T00:00:00.000Z"),
    ],
)
def test_timestamps_are_truncated_utc(moment: datetime, text: str) -> None:
    assert timestamp(moment) == text


@pytest.mark.parametrize(
    "value",
    [
        "2026-07-24T01:00:00.123456789Z",
        "2026-07-24T03:00:00.123456+02:00",
        "2026-07-24T01:00:00.123456",
        "20260724T010000.123456Z",
    ],
)
def test_iso_times_are_read(value: str) -> None:
    assert parse_timestamp(value) == datetime(2026, 7, 24, 1, 0, 0, 123_456, tzinfo=UTC)


def test_numbers_are_milliseconds_since_1970() -> None:
    assert parse_timestamp(1500) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("value", [None, "yesterday", "", True, 1e300, math.nan, [], "2026-13-01T00:00:00Z"])
def test_what_is_no_time(value: object) -> None:
    assert parse_timestamp(value) is None


def test_now_is_a_timestamp() -> None:
    moment = parse_timestamp(timestamp())
    assert moment is not None
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=5)


def test_surrogates_are_replaced_at_any_depth() -> None:
    value: object = "\ud800"
    for _ in range(5_000):
        value = {"\udc00": [value]}
    repaired: Any = without_surrogates(value)
    for _ in range(5_000):
        assert list(repaired) == ["\ufffd"]
        (repaired,) = repaired["\ufffd"]
    assert repaired == "\ufffd"


def test_a_value_that_contains_itself_stays_finite() -> None:
    value: dict[str, Any] = {"\ud800": 1}
    value["self"] = [value]
    repaired = without_surrogates(value)
    assert repaired["\ufffd"] == 1
    assert repaired["self"][0] is repaired


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_another_encoding_is_named(encoding: str) -> None:
    for line in '{"type": "x"}\n{"type": "y"}\n'.encode(encoding).splitlines(keepends=True):
        with pytest.raises(ValueError, match="it looks like UTF-16, and must be UTF-8"):
            parse_json(line)
