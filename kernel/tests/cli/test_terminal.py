"""What reports are made of."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from vally import (
    Diagnostic,
    Related,
    Style,
    VallyError,
    cells,
    clock,
    cut_to_cells,
    elapsed,
    inert_line,
    name_line,
    one_line,
    pad,
    plural,
    print_diagnostics,
    print_error,
    print_line,
    print_warning,
    printable,
    report_block,
    report_width,
    short_clock,
)
from vally.testing import run_cli

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


BREAKS = ["\n", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("mark", BREAKS)
@pytest.mark.parametrize("printed", ["error", "hint", "context", "place", "warning", "line", "progress"])
def test_text_of_others_stays_on_its_line(
    mark: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = f"::error::a{mark}::error::b\x1b[31m ##[error]c\x1b]0;title\x07"
    finding = Diagnostic(
        code="code", level="error", message="m", file="f", context=text if printed == "context" else None
    )
    if printed == "place":
        finding = replace(finding, related=(Related(file=text, line=1, column=2, message="m"),))
    print_it = {
        "error": lambda: print_error(VallyError(text)),
        "hint": lambda: print_error(VallyError("m", hints=[text])),
        "warning": lambda: print_warning(text),
        "line": lambda: print_line(text),
        "progress": lambda: print_line(text, to_stderr=True),
    }
    print_it.get(printed, lambda: print_diagnostics([finding]))()
    out, err = capsys.readouterr()
    shown = out or err
    assert len(shown.splitlines()) == (2 if printed in {"hint", "place"} else 1)
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert "error::b" in shown
    assert "##[" not in shown
    assert "\x1b" not in shown
    assert "title" not in shown


def test_lines_are_left_alone_outside_of_github_actions() -> None:
    assert inert_line("::x ##[y]", {}) == "::x ##[y]"
    assert inert_line("  ::x ##[y]", {"GITHUB_ACTIONS": "true"}) == "  : :x ## [y]"


@pytest.mark.parametrize(("own", "given", "shown"), [("true", "false", "##[x"), ("false", "true", "## [x")])
def test_messages_heed_the_environment_that_the_program_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, given: str, shown: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", own)
    assert f"'{shown}'" in run_cli(["##[x"], cwd=tmp_path, env={"GITHUB_ACTIONS": given}).stderr
