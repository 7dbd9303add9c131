"""Names with line breaks: every message stays on its line, whatever the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import CliResult

Vally = Callable[..., CliResult]
NAME = "a\n::error::bbb\u2028::error::ccc"
SPEC = """\
name: e
defaults: {executor: mock}
stimuli:
  - name: "a\\n::error::b"
    prompt: hi
    graders:
      - {type: "output-contans\\n::error::x", config: {"sub\\n::error::string": x}}
"""
FAILS = [
    ("eval", "--eval-spec"),
    ("eval", "--stimulus"),
    ("eval", "--tag"),
    ("eval", "--suite"),
    ("eval", "--resume"),
    ("eval", "--executor"),
    ("eval", "--backend"),
    ("eval", "--reporter-plugin"),
    ("eval", "--config"),
    ("eval", "--workers"),
    ("eval", "--output"),
    ("eval", "--param"),
    ("eval", "more"),
    ("eval", "-e", "eval.yaml", "--no"),
    ("lint",),
    ("lint", "--only"),
    ("help",),
    ("such",),
    ("grade", "-e", "eval.yaml"),
    ("oracle", "-e"),
    ("compare",),
    ("experiment", "run"),
    ("experiment", "merge", "-o", "out"),
    ("show",),
    ("runs",),
    ("rejudge",),
    ("simulate", "record"),
    ("ingest",),
    ("serve",),
    ("migrate",),
    ("schema", "--output-file"),
    ("schema", "--grader-plugin"),
    ("plugins", "list", "--grader-plugin"),
]


def is_on_its_lines(result: CliResult) -> bool:
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines()]
    return not any(line.startswith(("::error", "bbb", "ccc")) for line in lines)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("words", FAILS, ids=" ".join)
def test_a_name_does_not_break_a_message(words: tuple[str, ...], there: bool, tmp_path: Path, vally: Vally) -> None:
    (tmp_path / "eval.yaml").write_text(SPEC)
    if there:
        (tmp_path / NAME).mkdir()
    result = vally(*words, NAME)
    assert result.stdout + result.stderr
    assert is_on_its_lines(result), result.stdout + result.stderr


@pytest.mark.parametrize("word", [NAME, f"--{NAME}", f"--tag={NAME}", f"-{NAME}"])
@pytest.mark.parametrize("words", [[], ["eval"], ["experiment"]])
def test_a_usage_error_is_one_line_and_its_hints(words: list[str], word: str, vally: Vally) -> None:
    result = vally(*words, word)
    assert result.exit_code == 2
    assert is_on_its_lines(result), result.stderr


@pytest.mark.parametrize("command", ["eval", "lint", "oracle"])
def test_a_name_in_a_spec_does_not_break_a_diagnostic(command: str, tmp_path: Path, vally: Vally) -> None:
    (tmp_path / "eval.yaml").write_text(SPEC)
    result = vally(command, "-e", "eval.yaml")
    assert result.exit_code == 1
    assert "output-contans ::error::x" in result.stdout + result.stderr
    assert is_on_its_lines(result)


def test_files_with_such_names_are_told_on_one_line(tmp_path: Path, vally: Vally) -> None:
    directory = tmp_path / NAME
    directory.mkdir()
    for words in (["init", f"{NAME}/x"], ["migrate", NAME], ["runs", NAME]):
        result = vally(*words)
        assert result.exit_code == 0
        assert is_on_its_lines(result), result.stdout
    (directory / "x" / "eval.yaml").write_text(
        "config: {timeout: 3m}\nname: e\nstimuli:\n  - {name: s, prompt: p, graders: [{type: completed}]}\n"
    )
    for words in (["--check"], ["--diff"], []):
        assert is_on_its_lines(vally("migrate", NAME, *words))
