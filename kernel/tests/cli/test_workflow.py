"""Workflow commands and step summaries of CI services."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vally import append_step_summary, workflow_command, workflow_path

ROOM = 900 * 1024


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "::error file=a.yaml,line=3::plain"),
        ("50% of\r\nall", "::error file=a.yaml,line=3::50%25 of%0D%0Aall"),
        ("a: b, c::error::d", "::error file=a.yaml,line=3::a: b, c::error::d"),
        ("x\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029::error::y", "::error file=a.yaml,line=3::x        ::error::y"),
    ],
)
def test_the_text_stays_on_its_line(text: str, line: str) -> None:
    made = workflow_command("error", text, file="a.yaml", line=3, title=None)
    assert made == line
    assert len(made.splitlines()) == 1


def test_properties_are_escaped() -> None:
    made = workflow_command("warning", "t", title="a, b: 5%\nc::d", file="C:\\x,y")
    assert made == "::warning title=a%2C b%3A 5%25%0Ac%3A%3Ad,file=C%3A\\x%2Cy::t"
    assert workflow_command("notice", "t", title=None) == "::notice::t"


def test_paths_are_relative_to_the_checkout(tmp_path: Path) -> None:
    inside, outside = tmp_path / "repo" / "evals" / "a.yaml", tmp_path / "other.yaml"
    assert workflow_path(inside, str(tmp_path / "repo")) == "evals/a.yaml"
    assert workflow_path(outside, str(tmp_path / "repo")) == outside.as_posix()
    assert workflow_path(inside, None) == inside.as_posix()
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    assert workflow_path(tmp_path / "link" / "a.yaml", str(tmp_path / "repo")) == "a.yaml"


def test_summaries_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    assert append_step_summary(str(file), "ä\n") is None
    assert file.read_text(encoding="utf-8") == "before\nä\n"


def test_a_summary_has_at_most_900_kib(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("x" * 1000 + "\n")
    assert append_step_summary(str(file), "| ä | row |\n" * 200_000) is None
    assert ROOM - 100 < file.stat().st_size <= ROOM + 2
    lines = file.read_text(encoding="utf-8").splitlines()
    assert set(lines[1:-2]) == {"| ä | row |"}
    assert lines[-2:] == ["", "The rest does not fit here."]


@pytest.mark.parametrize("name", ["missing/summary.md", ".", "nul\0byte"])
def test_a_summary_that_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    assert append_step_summary(f"{tmp_path}/{name}", "text")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_reader_does_not_hold_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert append_step_summary(str(tmp_path / "pipe"), "text")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_told() -> None:
    assert append_step_summary("/dev/full", "text") == "No space left on device"
