"""Which stream gets what, in which encoding and colour, and what happens when nobody reads it."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult
from vally.testing import PlayedRun, ScriptedRun, trial_result
from vally_reporter_console.reporter import ConsoleReporter

Play = Callable[..., PlayedRun]
Grader = Callable[..., GraderResult]
HOSTILE = "::error::x \x1b[31mred\x1b[0m \x1b]0;title\x07\x9b2J\x00 \u202egnirts\u2066 ##[error]y\r\n::warning::z\ttab"


class Closed(io.StringIO):
    """A stream whose reader is gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_machine_output_moves_the_report_to_stderr(play: Play, grader: Grader, output: str) -> None:
    played = play(trial_result("s", grader("g")), output=output, color_stdout=True)
    assert played.stdout == ""
    assert played.stderr.startswith("━━━ s ━━━\n✔ PASS")
    assert "\x1b" not in played.stderr


def test_progress_goes_to_stderr(play: Play, grader: Grader) -> None:
    played = play(trial_result("s", grader("g")), progress="plain")
    assert played.stderr == "[1/1] ✔ scripted / s (default-model)  1.2s\n"
    assert "[1/1]" not in played.stdout


def test_colour_adds_nothing_but_codes(tmp_path: Path, grader: Grader) -> None:
    results = [
        trial_result("a", grader("g", False), grader("h", None), grader("i")),
        trial_result("b", status="error", error="down"),
        trial_result("c", status="skipped", skip_reason="no browser"),
    ]
    plain = ScriptedRun(tmp_path / "plain", results, progress="none").play(ConsoleReporter())
    colored = ScriptedRun(tmp_path / "color", results, progress="none", color_stdout=True).play(ConsoleReporter())
    assert "\x1b" not in plain.stdout
    assert re.sub(r"\x1b\[[0-9]+m", "", colored.stdout) == plain.stdout
    assert "  \x1b[31m✘\x1b[0m g  as wanted\n  \x1b[33m⚠\x1b[0m h  as wanted\n  \x1b[32m✔\x1b[0m i" in colored.stdout
    assert "\x1b[33m⚠ ERROR\x1b[0m  down" in colored.stdout
    assert "\x1b[31mFAILED\x1b[0m  0 of 1 evals passed" in colored.stdout


@pytest.mark.parametrize(
    ("encoding", "dot", "ellipsis"), [("ascii", "-", "..."), ("latin-1", "·", "..."), ("cp1252", "·", "…")]
)
def test_stand_ins_where_a_stream_cannot_encode_the_glyphs(
    play: Play, grader: Grader, encoding: str, dot: str, ellipsis: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict", newline="")
    graders = [grader("g", evidence="a → b ✗ ℹ"), grader("h", False, "e" * 501), grader("i", None)]
    results = [trial_result("s", *graders), trial_result("t", status="skipped", skip_reason="cancelled")]
    text = play(*results, stdout=stream).stdout
    assert text.startswith(f"=== s ===\n[warn] ERROR  0/1 trials passed {dot} 1 grader error {dot} scripted")
    assert f"Graders (1/3)\n{'-' * 41}\n  [ok] g  a -> b x [info]\n  [FAIL] h  {'e' * 499}{ellipsis}\n" in text
    assert "  [warn] i  as wanted\n" in text
    assert "[skip] SKIPPED  cancelled\n" in text
    assert f"Summary\n{'-' * 13}\n  [FAIL] scripted" in text


def test_text_of_others_has_no_control_characters(play: Play, grader: Grader) -> None:
    nested = grader(HOSTILE, False, HOSTILE, details=[grader(HOSTILE, evidence=HOSTILE)])
    results = [
        trial_result(HOSTILE, nested, eval_name=HOSTILE, model=HOSTILE),
        trial_result("e", status="error", error=HOSTILE),
        trial_result("k", status="skipped", skip_reason=HOSTILE),
    ]
    played = play(*results, verbose=True, progress="plain", prompt=HOSTILE, skills=[HOSTILE])
    for text in (played.stdout, played.stderr):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "━━━ ::error::x red gnirts ##[error]y ::warning::z tab ━━━" in played.stdout


@pytest.mark.parametrize("verbose", [False, True])
def test_what_looks_like_a_credential_is_not_printed(play: Play, grader: Grader, verbose: bool) -> None:
    secret = "sk-\x1b[0m" + "a" * 30
    results = [
        trial_result(f"a {secret}", grader(f"b {secret}", False, f"c {secret} {'e' * 480}")),
        trial_result("d", status="error", error=f"d {secret}"),
        trial_result("f", status="skipped", skip_reason=f"f {secret}"),
    ]
    played = play(*results, prompt=f"p {secret}", verbose=verbose, progress="plain")
    for text in (played.stdout, played.stderr):
        assert "sk-" not in text
        assert "d <redacted>" in text
    assert "━━━ a <redacted> ━━━" in played.stdout
    assert "  ✘ b <redacted>  c <redacted>" in played.stdout


def test_github_gets_no_command_from_the_report(play: Play, grader: Grader) -> None:
    results = [trial_result(f"s{number}", grader("g", False, HOSTILE)) for number in range(3)]
    environ = {"GITHUB_ACTIONS": "true"}
    played = play(*results, skills=[HOSTILE], verbose=True, progress="plain", environ=environ)
    blocks = re.findall(r"::stop-commands::([0-9a-f]{32})\n(.*?\n)::\1::\n", played.stdout, re.DOTALL)
    assert "".join(f"::stop-commands::{token}\n{text}::{token}::\n" for token, text in blocks) == played.stdout
    assert [text[:7] for _, text in blocks] == ["Found 1", "━━━ s0 ", "━━━ s1 ", "━━━ s2 ", "Summary"]
    assert len({token for token, _ in blocks}) == 5


@pytest.mark.parametrize("environ", [{}, {"GITHUB_ACTIONS": "false"}, {"GITHUB_ACTIONS": ""}])
def test_elsewhere_the_report_is_not_wrapped(play: Play, grader: Grader, environ: dict[str, str]) -> None:
    assert "stop-commands" not in play(trial_result("s", grader("g")), environ=environ).stdout


def test_github_gets_no_command_from_progress(play: Play, grader: Grader) -> None:
    results = [trial_result("##[error]x", grader("g", False)), trial_result("e", status="error", error="##[warning]y")]
    played = play(*results, progress="plain", verbose=True, environ={"GITHUB_ACTIONS": "true"})
    assert "##[" not in played.stderr
    assert "## [error]x" in played.stderr


def test_a_closed_stdout_is_told_to_the_run(play: Play, grader: Grader) -> None:
    with pytest.raises(BrokenPipeError):
        play(trial_result("s", grader("g")), stdout=Closed(BrokenPipeError(errno.EPIPE, "Broken pipe")))


@pytest.mark.parametrize(
    "options", [{"progress": "plain"}, {"output": "jsonl"}, {"progress": "plain", "verbose": True}]
)
def test_a_closed_stderr_changes_nothing(play: Play, grader: Grader, options: dict[str, Any]) -> None:
    stderr = Closed(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    played = play(trial_result("s", grader("g")), stderr=stderr, **options)
    assert ("PASSED" in played.stdout) == ("output" not in options)
