"""What configs of graders can do beyond checking values: name files beside the eval, and say what an entry needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import model_validator

from vally import (
    Config,
    ConfigInvalid,
    GraderInput,
    GraderResult,
    GraderSpec,
    PluginHost,
    SpecFile,
    grader,
    read_eval_spec,
)
from vally.testing import event, grade, trajectory


class WordsConfig(Config):
    """Words in a file beside the eval, or a file of the workspace that has them."""

    words: SpecFile | None = None
    path: str | None = None

    @model_validator(mode="after")
    def _no_blank_file(self) -> WordsConfig:
        if self.words is not None and self.words.is_absolute() and not self.words.read_text(encoding="utf-8").strip():
            raise ValueError("'words' must not be an empty file")
        return self

    def requires_workspace(self) -> bool:
        return self.path is not None


@grader("words", config=WordsConfig)
def words(input: GraderInput[WordsConfig]) -> GraderResult:
    """The answer has the words."""
    assert input.config.words is not None
    wanted = input.config.words.read_text(encoding="utf-8").split()
    return GraderResult.verdict(set(wanted) <= set(input.trajectory.output.split()), f"wanted {' '.join(wanted)}")


class RaisingConfig(Config):
    def requires_workspace(self) -> bool:
        raise RuntimeError("boom")


RAISING = GraderSpec(name="raising", summary="s", factory=object, config=RaisingConfig, requires_workspace=True)


class BrokenConfig(Config):
    word: str = ""

    @model_validator(mode="after")
    def _break(self) -> BrokenConfig:
        raise TypeError("no\nway")


BROKEN = GraderSpec(name="broken", summary="s", factory=object, config=BrokenConfig)
HOST = PluginHost.from_objects(words, RAISING, BROKEN)
EVAL = """\
name: e
defaults: {{executor: mock}}
stimuli:
  - name: s
    turns: [p, q]
    graders:
      - type: words
{entry}
"""


def findings(directory: Path, entry: str) -> list[tuple[str, int | None, int | None]]:
    (directory / "eval.yaml").write_text(EVAL.format(entry=entry), encoding="utf-8")
    loaded = read_eval_spec(directory / "eval.yaml", host=HOST)
    return [(item.message, item.line, item.column) for item in loaded.diagnostics if item.level == "error"]


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("missing.txt", "'words' must be a file, 'missing.txt' does not exist"),
        ("folder", "'words' must be a file, 'folder' is not a file"),
        ("empty.txt", "'words' must not be an empty file"),
    ],
)
def test_a_file_beside_the_eval_is_checked_when_the_spec_is_loaded(tmp_path: Path, file: str, problem: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").write_text(" \n")
    found = findings(tmp_path, f"        config:\n          words: {file}")
    assert found == [(f"Invalid config for words: {problem}", 9, 18)]


def test_a_file_beside_the_eval_is_read_wherever_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list.txt").write_text("sun sea")
    monkeypatch.chdir(tmp_path.parent)
    assert findings(tmp_path, "        config: {words: list.txt}") == []
    config = {"words": "list.txt"}
    result = grade(words, config, trajectory(output="sea and sun"), spec_dir=tmp_path)
    assert (result.passed, result.evidence) == (True, "wanted sun sea")


def test_without_a_directory_nothing_is_looked_at() -> None:
    assert HOST.parse_config(words, {"words": "missing.txt"}).words == Path("missing.txt")


def test_while_grading_a_missing_file_is_an_error(tmp_path: Path) -> None:
    result = grade(words, {"words": "missing.txt"}, trajectory(), spec_dir=tmp_path)
    assert (result.status, result.evidence) == (
        "error",
        "Invalid config for words: 'words' must be a file, 'missing.txt' does not exist",
    )


@pytest.mark.parametrize("field", ["turn: 0", "scope: main"])
def test_the_config_decides_whether_an_entry_may_be_narrowed(tmp_path: Path, field: str) -> None:
    (tmp_path / "list.txt").write_text("sun")
    key = field.split(":", 1)[0]
    assert findings(tmp_path, f"        {field}\n        config: {{words: list.txt}}") == []
    assert findings(tmp_path, f"        {field}\n        config: {{path: a}}") == [
        (f"Invalid config for words: '{key}' is not supported", 8, 9 + len(key) + 2)
    ]


def test_the_config_decides_while_grading_too(tmp_path: Path) -> None:
    recorded = trajectory(event("assistant_message", content="x", turn=0), work_dir=str(tmp_path))
    result = grade(words, {"path": "a"}, recorded, turn=0)
    assert result.evidence == "Invalid config for words: 'turn' is not supported"


@pytest.mark.parametrize(("config", "gradable"), [({"words": "w"}, "trajectory"), ({"path": "p"}, "state")])
def test_the_golden_input_follows_from_what_an_entry_needs(config: dict[str, Any], gradable: str) -> None:
    assert words.gradable_with(HOST.parse_config(words, config)) == gradable


def test_a_config_that_raises_leaves_it_to_the_record() -> None:
    assert RAISING.gradable_with(HOST.parse_config(RAISING, {})) == "state"


def test_a_validator_that_breaks_makes_the_config_invalid() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        HOST.parse_config(BROKEN, {})
    assert str(caught.value) == "Invalid config for broken: it cannot be checked: TypeError: no way"


def saying(name: str, value: object) -> type[Config]:
    """A config model with a method that returns a value, or raises it."""

    def method(self: Config) -> object:
        if isinstance(value, BaseException):
            raise value
        return value

    return type("SayingConfig", (Config,), {name: method, "__module__": __name__})


SAID = {
    "a text for many": (
        "evidence",
        "diff",
        "must return a set of 'diff', 'golden_patch', 'repo', 'turn-diff', not 'diff'",
    ),
    "an unknown word": (
        "evidence",
        {"dif"},
        "must return a set of 'diff', 'golden_patch', 'repo', 'turn-diff', not {'dif'}",
    ),
    "nothing": ("evidence", None, "must return a set of 'diff', 'golden_patch', 'repo', 'turn-diff', not None"),
    "an error": ("evidence", RuntimeError("not today"), "raised RuntimeError: not today"),
    "an exit": ("oracle", SystemExit(3), "raised SystemExit: 3"),
    "no golden input": ("oracle", "both", "must return trajectory, state, either or none, not 'both'"),
    "no flag": ("requires_workspace", "no", "must return True or False, not 'no'"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_a_config_says_of_itself_is_checked_when_the_spec_is_loaded(tmp_path: Path, case: str) -> None:
    name, value, reason = SAID[case]
    record = GraderSpec(name="words", summary="s", factory=Judged, config=saying(name, value))
    (tmp_path / "eval.yaml").write_text(EVAL.format(entry=""), encoding="utf-8")
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(record))
    found = [(item.code, item.message) for item in loaded.diagnostics if item.level == "error"]
    assert found == [("plugin-load-failed", f"plugin 'words': {name}() of its config {reason}")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("evidence", ["diff"]),
        ("evidence", frozenset()),
        ("oracle", "none"),
    ],
)
def test_what_can_be_understood_is_no_error(tmp_path: Path, name: str, value: object) -> None:
    record = GraderSpec(name="words", summary="s", factory=Judged, config=saying(name, value))
    (tmp_path / "eval.yaml").write_text(EVAL.format(entry=""), encoding="utf-8")
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(record))
    assert [item.code for item in loaded.diagnostics if item.level == "error"] == []


def test_a_single_text_is_one_warning(tmp_path: Path) -> None:
    record = GraderSpec(name="words", summary="s", factory=Judged, config=saying("warnings", "hardly meant"))
    (tmp_path / "eval.yaml").write_text(EVAL.format(entry=""), encoding="utf-8")
    loaded = read_eval_spec(tmp_path / "eval.yaml", host=PluginHost.from_objects(record))
    assert [item.message for item in loaded.diagnostics if item.code == "suspicious-grader-config"] == [
        "words: hardly meant"
    ]


class LeavingConfig(Config):
    @model_validator(mode="after")
    def _leave(self) -> LeavingConfig:
        raise SystemExit(3)


def test_a_validator_that_exits_ends_nothing_but_the_check() -> None:
    record = GraderSpec(name="leaving", summary="s", factory=Judged, config=LeavingConfig)
    with pytest.raises(ConfigInvalid, match="Invalid config for leaving: it cannot be checked: SystemExit: 3"):
        PluginHost.from_objects(record).parse_config(record, {})


class Judged:
    def grade(self, input: object) -> None: ...
