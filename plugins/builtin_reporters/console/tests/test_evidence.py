"""How much of the evidence a card shows: a line of the terminal's width, 500 characters, or all of it."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from vally import GraderResult
from vally.testing import PlayedRun, ScriptedRun, trial_result
from vally_reporter_console.reporter import ConsoleReporter

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[tuple[io.TextIOWrapper, Callable[[], str]]]:
    """A stream on a terminal of that width, and a function that returns what was written to it."""
    import fcntl
    import termios

    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    attributes = termios.tcgetattr(writer)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(writer, termios.TCSANOW, attributes)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:

        def written() -> str:
            os.set_blocking(reader, False)
            pieces = []
            with contextlib.suppress(BlockingIOError):
                while piece := os.read(reader, 65_536):
                    pieces.append(piece)
            return b"".join(pieces).decode()

        yield stream, written
    os.close(reader)


def grader_lines(text: str) -> list[str]:
    return text[text.index("─" * 41) :].split("\n\n")[0].splitlines()[1:]


def test_500_characters_where_there_is_no_terminal(play: Play, grader: Grader) -> None:
    graders = [grader("a", evidence="e" * 500), grader("b", evidence="e" * 501), grader("c", evidence="é" * 501)]
    lines = grader_lines(play(trial_result("s", *graders), environ={"COLUMNS": "40"}).stdout)
    assert lines == [f"  ✔ a  {'e' * 500}", f"  ✔ b  {'e' * 499}…", f"  ✔ c  {'é' * 499}…"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize("columns", [60, 100])
def test_the_width_of_a_terminal(tmp_path: Path, grader: Grader, columns: int) -> None:
    name = "n" * columns
    graders = [
        grader("ascii", evidence="e" * 200),
        grader("wide", evidence="漢字" * 100),
        grader("short", evidence="fits"),
        grader("nested", evidence="n" * 200, details=[grader("inner", evidence="i" * 200)]),
        grader(name, evidence="never seen"),
    ]
    run = ScriptedRun(tmp_path, [trial_result("s", *graders)], progress="none", environ={"COLUMNS": "500"})
    with terminal(columns) as (stream, written):
        run.play(ConsoleReporter(), stdout=stream)
        ascii_, wide, short, nested, inner, long_name = grader_lines(written())
    assert ascii_ == f"  ✔ ascii  {'e' * (columns - 12)}…"
    assert columns - 1 <= cell_len(wide) <= columns
    assert wide.endswith("…")
    assert short == "  ✔ short  fits"
    assert len(nested) == len(inner) == columns
    assert long_name == f"  ✔ {name}  …"


def test_verbose_shows_all_of_it_wrapped_and_indented(play: Play, grader: Grader) -> None:
    text = f"{'word ' * 40}end\n\nsecond line\n    indented {'x' * 120}"
    graders = [grader("long name", evidence=text), grader("next", evidence="")]
    lines = grader_lines(play(trial_result("s", *graders), verbose=True, environ={"COLUMNS": "60"}).stdout)
    assert lines == [
        f"  ✔ long name  {('word ' * 9).rstrip()}",
        f"      {('word ' * 11).rstrip()}",
        f"      {('word ' * 11).rstrip()}",
        f"      {'word ' * 9}end",
        "      second line",
        "          indented",
        f"      {'x' * 120}",
        "  ✔ next  ",
    ]


@pytest.mark.parametrize(("columns", "width"), [("70", 70), ("", 100), ("wide", 100), ("0", 100)])
def test_the_width_of_verbose_evidence_without_a_terminal(play: Play, grader: Grader, columns: str, width: int) -> None:
    graders = [grader("g", evidence="a " * 200)]
    lines = grader_lines(play(trial_result("s", *graders), verbose=True, environ={"COLUMNS": columns}).stdout)
    assert max(len(line) for line in lines) in (width - 1, width)
    assert sum(line.count("a") for line in lines) == 200


@pytest.mark.parametrize("verbose", [False, True])
def test_evidence_of_five_megabytes(play: Play, grader: Grader, verbose: bool) -> None:
    graders = [grader("g", evidence="0123456789 \x1b[31m\n" * 300_000)]
    played = play(trial_result("s", *graders), verbose=verbose)
    assert "\x1b" not in played.stdout
    assert played.stdout.count("0123456789") == (300_000 if verbose else 45)


def test_what_kept_a_grader_from_a_verdict_is_shown_whole(play: Play, grader: Grader) -> None:
    nested = GraderResult.verdict(False, "n", name="n", details=[grader("m", None, "why " * 200 + "at last")])
    played = play(trial_result("s", grader("g", None, "e " * 400 + "the cause"), nested))
    words = " ".join(played.stdout.partition("Summary")[0].split())
    assert "e e e the cause " in words
    assert "why why at last " in words
    assert "…" not in words
