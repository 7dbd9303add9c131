"""Options that reporters bring: what they accept, and what reaches the reporter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ReporterOption, ReporterSpec, RunStart
from vally.testing import CliResult, ProjectBuilder, run_cli


class Listens:
    """Remembers the flags of the runs that it was told about."""

    flags: list[dict[str, Any]]

    def __init__(self) -> None:
        self.flags = []

    def on_run_start(self, event: RunStart) -> None:
        self.flags.append(dict(event.options.flags))


def record(listener: Listens) -> ReporterSpec:
    options = (
        ReporterOption(name="no-bells", help="ring no bells"),
        ReporterOption(name="bell-tone", help="tone of the bells", value="text"),
        ReporterOption(name="bell-url", help="where bells are", value="url"),
    )
    return ReporterSpec(name="bells", summary="rings", factory=lambda: listener, options=options)


def evaluate(root: Path, listener: Listens, *words: str) -> CliResult:
    project = ProjectBuilder(root)
    graders = [{"type": "output-contains", "config": {"substring": "hello"}}]
    project.eval("one", [{"name": "a", "prompt": "hello", "graders": graders}], defaults={"executor": "mock"})
    words = ("eval", "-e", "evals/one/eval.yaml", "--output-dir", "out", *words)
    return run_cli(list(words), cwd=root, plugins=[record(listener)])


def test_values_reach_the_reporter(tmp_path: Path) -> None:
    listener = Listens()
    result = evaluate(tmp_path, listener, "--no-bells", "--bell-tone=a", "--bell-url", "http://localhost:4318/x")
    assert result.exit_code == 0, result.stderr
    (flags,) = listener.flags
    assert (flags["no-bells"], flags["bell-tone"], flags["bell-url"]) == (True, "a", "http://localhost:4318/x")
    assert "deprecated" not in result.stderr


def test_what_is_not_given_is_false_or_nothing(tmp_path: Path) -> None:
    listener = Listens()
    assert evaluate(tmp_path, listener).exit_code == 0
    (flags,) = listener.flags
    assert (flags["no-bells"], flags["bell-tone"], flags["bell-url"]) == (False, None, None)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:4318", "'localhost:4318' is not an http or https URL (example: http://localhost:4318)"),
        ("ftp://host", "'ftp://host' is not an http or https URL"),
        ("http://", "'http://' is not an http or https URL"),
        ("http://host:99999", "'http://host:99999' is not an http or https URL"),
        ("http://[::1", "'http://[::1' is not an http or https URL"),
        ("http://a b", "'http://a b' is not an http or https URL"),
        ("https://user:hunter2@host", "must not contain credentials"),
        ("ftp://hunter2@host", "must not contain credentials"),
        ("http://hunter2@[::1", "is not an http or https URL"),
    ],
)
def test_urls_are_checked(tmp_path: Path, url: str, said: str) -> None:
    listener = Listens()
    result = evaluate(tmp_path, listener, "--bell-url", url)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "--bell-url" in result.stderr
    assert "hunter2" not in result.stdout + result.stderr
    assert not listener.flags
    assert not (tmp_path / "out").exists()


def test_help_names_them(tmp_path: Path) -> None:
    result = run_cli(["eval", "--help"], cwd=tmp_path, plugins=[record(Listens())])
    for line in ("--no-bells", "--bell-tone TEXT", "--bell-url URL"):
        assert line in result.stdout


@pytest.mark.parametrize("options", [("no-bells",), (ReporterOption(name="No Bells", help="x"),)])
def test_a_wrong_option_is_refused(tmp_path: Path, options: Any) -> None:
    wrong = ReporterSpec(name="bells", summary="rings", factory=Listens, options=options)
    result = run_cli(["eval", "-e", "x.yaml"], cwd=tmp_path, plugins=[wrong])
    assert result.exit_code != 0
    assert "options of 'bells' must be ReporterOption" in result.stdout + result.stderr


@pytest.mark.parametrize(
    "fields",
    [{"option": "require-pass"}, {"options": (ReporterOption(name="require-pass", help="x", value="text"),)}],
    ids=["activating", "further"],
)
def test_options_of_the_command_stay_its_own(tmp_path: Path, fields: dict[str, Any]) -> None:
    ProjectBuilder(tmp_path).eval(
        "one",
        [{"name": "a", "prompt": "x", "graders": [{"type": "output-contains", "config": {"substring": "y"}}]}],
        defaults={"executor": "mock"},
    )
    greedy = ReporterSpec(name="greedy", summary="takes", factory=Listens, **fields)
    result = run_cli(["eval", "-e", "evals/one/eval.yaml", "--require-pass"], cwd=tmp_path, plugins=[greedy])
    assert result.exit_code == 1
    assert "option '--require-pass' of reporter 'greedy' is one of the command's own" in result.stderr


@pytest.mark.parametrize(("value", "refused"), [("flag", False), ("text", True)])
def test_two_reporters_may_share_an_option_of_one_shape(tmp_path: Path, value: Any, refused: bool) -> None:
    first, second = Listens(), Listens()
    records = [
        ReporterSpec(
            name=name, summary="x", factory=factory, options=(ReporterOption(name="tone", help="x", value=kind),)
        )
        for name, factory, kind in (("first", lambda: first, "flag"), ("second", lambda: second, value))
    ]
    ProjectBuilder(tmp_path).eval("one", [{"name": "a", "prompt": "x"}], defaults={"executor": "mock"})
    result = run_cli(["eval", "-e", "evals/one/eval.yaml", "--tone"], cwd=tmp_path, plugins=records)
    assert first.flags[0]["tone"] is True
    assert ("option '--tone' of reporter 'second' is another one of reporter 'first'" in result.stderr) is refused
