"""What reports are made of."""

from __future__ import annotations

import io

import pytest

from vally import (
    Style,
    cells,
    clock,
    cut_to_cells,
    elapsed,
    name_line,
    one_line,
    pad,
    plural,
    printable,
    report_block,
    report_width,
    short_clock,
)

FAMILY = "👨‍👩‍👧"


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("試験", 4), ("e\u0301", 1), (FAMILY, 2), ("⚠️", 2), ("…→✔", 3), ("", 0)]
)
def test_columns(text: str, columns: int) -> None:
    assert cells(text) == columns
    assert cells(pad(text, 10)) == 10


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("ab  cdefg", 5, "ab…"),
        ("試験試験", 6, "試験…"),
        (FAMILY * 3, 5, f"{FAMILY * 2}…"),
        ("abc", 1, "…"),
        ("x" * 100_000, 3, "xx…"),
    ],
)
def test_cutting_keeps_whole_characters(text: str, limit: int, cut: str) -> None:
    assert cut_to_cells(text, limit) == cut
    assert cells(cut_to_cells(text, limit)) <= limit


def test_text_of_others() -> None:
    hostile = "a\x1b[31mb\r\n\tc\u202e ghp_" + "x" * 36
    assert "\x1b" not in printable(hostile)
    assert "ghp_x" not in one_line(hostile)
    assert one_line(" a \n\n b\tc ") == "a b c"
    assert (name_line(" a \n b "), name_line("\x1b[2J")) == ("a b", "(unnamed)")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0.0s"), (8_349, "8.3s"), (59_949, "59.9s"), (59_950, "1m00s"), (161_000, "2m41s"), (3_720_000, "1h02m")],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert elapsed(milliseconds) == text


def test_clocks_and_numbers() -> None:
    assert (clock(12), clock(3_720)) == ("0m12s", "1h02m")
    assert (short_clock(12), short_clock(3_723)) == ("0:12", "1:02:03")
    assert (plural(1, "trial"), plural(31_204, "token")) == ("1 trial", "31,204 tokens")


def test_colours() -> None:
    assert Style(True).glyph("✔", "pass") == "\x1b[32m✔ pass\x1b[0m"
    assert Style().glyph("✘") == "✘"


def test_width_of_what_is_no_terminal() -> None:
    assert report_width(io.StringIO(), {}) == 100
    assert report_width(io.StringIO(), {"COLUMNS": "60"}) == 60
    assert report_width(io.StringIO(), {"COLUMNS": "wide"}) == 100


def test_blocks_in_workflows() -> None:
    assert report_block("::error::x\n", {}) == "::error::x\n"
    first, body, last = report_block("::error::x\n", {"GITHUB_ACTIONS": "true"}).splitlines()
    assert first.startswith("::stop-commands::")
    assert (body, last) == ("::error::x", f"::{first.removeprefix('::stop-commands::')}::")
    assert report_block("x\n", {"GITHUB_ACTIONS": "true"}).splitlines()[0] != first
