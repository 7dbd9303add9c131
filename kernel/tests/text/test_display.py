"""Names, evidence, numbers, JSON, terminal text and cuts."""

from __future__ import annotations

import json
import math
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally.text.display import (
    clip_end,
    clip_middle,
    compact_json,
    cut_clusters,
    cut_evidence,
    cut_middle,
    describe_grader_value,
    es_number,
    fixed,
    join_capped,
    one_decimal,
    one_line_evidence,
    sanitise,
    strip_controls,
    two_decimals,
)
from vally.text.literal import contains_literal
from vally.text.numbers import signed

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\tb  c\n", "a b c"),
        ("\x00\x1b[31m", "[31m"),
        ("a\u2028b\u2029c", "a b c"),
        ("\x85x\x9f", "x"),
        ("\ud800", "\ufffd"),
        ("  ", ""),
    ],
)
def test_sanitise(text: str, clean: str) -> None:
    assert sanitise(text) == clean


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("e\u0301" * 60, "e\u0301" * 60),
        ("e\u0301" * 61, "e\u0301" * 59 + "…"),
        (FAMILY * 61, FAMILY * 59 + "…"),
        ("🇩🇪" * 61, "🇩🇪" * 59 + "…"),
        ("가" * 61, "가" * 59 + "…"),
        ("a" + "\u0301" * 500, "a" + "\u0301" * 500),
    ],
)
def test_cut_counts_grapheme_clusters(text: str, cut: str) -> None:
    assert cut_clusters(text) == cut


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "a b"),
        (5, "5"),
        (1.5, "1.5"),
        (2.0, "2"),
        (True, "true"),
        (["a", 1, False], "a, 1, false"),
        (None, ""),
        ({"a": 1}, ""),
        ([], ""),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_describe_grader_value(value: object, text: str) -> None:
    assert describe_grader_value(value) == text


def test_evidence() -> None:
    assert one_line_evidence("a\nb\r\tc\x1b\x9bd") == "a\\nb\\r\\tc  d"
    assert one_line_evidence("x" * 2000) == "x" * 2000
    assert one_line_evidence("x" * 2001) == "x" * 1999 + "…"
    assert one_line_evidence("\n" * 1001) == "\\n" * 999 + "\\…"
    assert cut_evidence("\n" * 10_001, 10_000) == "\n" * 9_999 + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (123456789012345680000.0, "123456789012345680000"),
        (1.25e22, "1.25e+22"),
        (-3.5, "-3.5"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2**53, "9007199254740992"),
        (2**64, "18446744073709552000"),
        (10**400, "Infinity"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (100, "100"),
        (0.000001234, "0.000001234"),
        (1234.5678, "1234.5678"),
    ],
)
def test_es_number(value: float, text: str) -> None:
    assert es_number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_es_number_reads_back(value: float) -> None:
    assert float(es_number(value)) == value


def test_compact_json() -> None:
    value = {"b": [1.0, 2.5, 1e-7], "a": {"é/": '\n"\\\u2028\x7f'}, "c": [True, None, {}, []], "d": "\ud800x"}
    assert compact_json(value) == (
        '{"b":[1,2.5,1e-7],"a":{"é/":"\\n\\"\\\\\u2028\x7f"},"c":[true,null,{},[]],"d":"\\ud800x"}'
    )
    assert compact_json(math.nan) == compact_json(math.inf) == "null"
    with pytest.raises(TypeError, match="set is not a JSON value"):
        compact_json({"a": set()})


def test_compact_json_of_deep_nesting() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    assert compact_json(value) == "[" * 5001 + "]" * 5001


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON)
def test_compact_json_reads_back(value: object) -> None:
    # ECMAScript prints large doubles without exponent, which Python would read as an integer of other digits.
    assert json.loads(compact_json(value), parse_int=float) == value


@pytest.mark.parametrize(
    ("value", "two", "one"),
    [
        (0.375, "0.38", "0.4"),
        (0.625, "0.63", "0.6"),
        (1.005, "1.00", "1.0"),
        (2.675, "2.67", "2.7"),
        (0.25, "0.25", "0.3"),
        (0, "0.00", "0.0"),
        (1, "1.00", "1.0"),
        (-0.375, "-0.37", "-0.4"),
        (-0.001, "0.00", "0.0"),
        (99.95, "99.95", "100.0"),
    ],
)
def test_decimals(value: float, two: str, one: str) -> None:
    assert two_decimals(value) == two
    assert one_decimal(value) == one


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.125, 2, "+0.13"), (-0.125, 2, "-0.12"), (-0.001, 2, "+0.00"), (0, 1, "+0.0"), (2.5, 0, "+3"), (-2.5, 0, "-2")],
)
def test_differences_have_a_sign(value: float, places: int, text: str) -> None:
    assert signed(value, places) == text


def test_decimals_beyond_numbers() -> None:
    assert fixed(0.5, 0) == "1"
    assert fixed(1234.5, 0) == "1235"
    assert two_decimals(math.nan) == "NaN"
    assert one_decimal(math.inf) == "Infinity"


@given(st.floats(0, 1e6))
def test_decimals_are_exact(value: float) -> None:
    assert two_decimals(value) == str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain é\ttext\n", "plain é\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1bcx\x1b(Bx\x1b7", "xx"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1b", ""),
        ("\x1b\x1b[31mx", "x"),
        ("\x1b[\x1b[31m31mx", "31mx"),
        ("a\r\nb\rc\x08\x7f\x00", "a\nbc"),
        ("user\u202e\u2066x", "userx"),
        ("\ud800", "\ufffd"),
        ("a\x85b", "ab"),
    ],
)
def test_strip_controls(text: str, clean: str) -> None:
    assert strip_controls(text) == clean


@given(st.text(st.sampled_from("\x1b[]m\\;0\x07\x9b\x9c a\n\t\r\u202e") | st.characters()))
def test_stripped_text_holds_no_control(text: str) -> None:
    clean = strip_controls(text)
    assert not [c for c in clean if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e"]
    assert strip_controls(clean) == clean


def test_clip_middle() -> None:
    """TR-1 and TR-2."""
    kib = 1024
    clipped = clip_middle("a" * 300 * kib, 256 * kib, 192 * kib, 64 * kib)
    assert clipped == "a" * 192 * kib + "…[45056 bytes omitted]…" + "a" * 64 * kib
    assert clip_middle("😀" * 4, 10, 6, 4) == "😀…[8 bytes omitted]…😀"
    assert clip_middle("😀" * 4, 10, 4, 6) == "😀…[8 bytes omitted]…😀"
    assert clip_middle("😀" * 4, 16, 8, 8) == "😀" * 4
    assert clip_middle("\ud800" * 4, 10, 5, 5) == "\ud800…[6 bytes omitted]…\ud800"
    assert clip_end("é" * 5, 5) == "éé…[6 bytes omitted]…"


@given(st.text(max_size=60), st.integers(0, 40), st.integers(0, 40))
def test_a_clipped_text_counts_what_is_gone(text: str, head: int, tail: int) -> None:
    clipped = clip_middle(text, head + tail, head, tail)
    if clipped == text:
        return
    before, _, rest = clipped.partition("…[")
    count, _, after = rest.partition(" bytes omitted]…")
    assert len(before.encode()) + int(count) + len(after.encode()) == len(text.encode())
    assert text.startswith(before)
    assert text.endswith(after)


def test_join_capped() -> None:
    assert join_capped(["a", "b"], 2) == "a, b"
    assert join_capped(range(25), 25) == ", ".join(map(str, range(20))) + ", … (+5 more)"


@pytest.mark.parametrize(
    ("text", "literal", "sensitive", "found"),
    [
        ("a Test", "test", False, True),
        ("a Test", "test", True, False),
        ("STRASSE", "straße", False, False),
        ("İ", "i̇", False, True),
        ("ÀB", "àb", False, True),
        ("cafe\u0301", "café", False, False),
        ("a\r\nb", "a\nb", False, False),
    ],
)
def test_literal(text: str, literal: str, sensitive: bool, found: bool) -> None:
    assert contains_literal(text, literal, case_sensitive=sensitive) is found


@pytest.mark.parametrize(
    ("text", "cut"),
    [("", ""), ("a" * 10, "a" * 10), ("abcdefghijk", "abc…fghijk"), ("what " * 9 + "why", "wha…at why")],
)
def test_errors_are_cut_before_their_end(text: str, cut: str) -> None:
    assert cut_middle(text, 10) == cut
