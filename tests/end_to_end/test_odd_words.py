"""What is in the place of a file or a directory that a command names."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import Make, RunWriter

from vally.testing import CliResult

Vally = Callable[..., CliResult]
DIRECTORIES = [
    ("runs",),
    ("ingest",),
    ("serve",),
    ("compare",),
    ("eval", "-e", "e.yaml", "--work-dir"),
    ("eval", "-e", "e.yaml", "--skill-dir"),
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    stimuli = "stimuli: [{name: s, prompt: p, graders: [{type: completed}]}]"
    (tmp_path / "e.yaml").write_text(f"name: e\ndefaults: {{executor: mock}}\n{stimuli}\n")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "junk.jsonl").write_text("junk\n" * 1_000)
    (tmp_path / "directory").mkdir()


@pytest.mark.parametrize("words", DIRECTORIES, ids=" ".join)
def test_a_directory_that_is_none(words: tuple[str, ...], vally: Vally) -> None:
    # What may be the name of a run is looked for as such.
    missing = "'nowhere' does not exist" if words[0] == "eval" else "no run directory, results file or run id 'nowhere'"
    for name, why in (("nowhere", missing), ("e.yaml", "'e.yaml' is not a directory")):
        result = vally(*words, name)
        assert result.exit_code == 1
        assert why in result.stderr


@pytest.mark.parametrize("words", DIRECTORIES, ids=" ".join)
def test_a_directory_that_may_not_be_read(
    words: tuple[str, ...], vally: Vally, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As permissions do, which bind not everybody.
    monkeypatch.setattr(os, "access", lambda path, *_, **__: Path(path).name != "directory")
    result = vally(*words, "directory")
    assert result.exit_code == 1
    assert "'directory' cannot be read: permission denied" in result.stderr


def test_a_directory_in_the_place_of_an_experiment_file(vally: Vally) -> None:
    assert "'nowhere' does not exist" in vally("experiment", "run", "nowhere").stderr
    result = vally("experiment", "run", "directory")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: FILE: 'directory' is not a file; name the experiment file itself\n",
    )


@pytest.mark.parametrize("words", [("show",), ("rejudge",), ("simulate", "record")], ids=" ".join)
def test_a_file_without_records_is_named_and_gives_no_empty_hint(words: tuple[str, ...], vally: Vally) -> None:
    result = vally(*words, "empty.jsonl")
    assert result.exit_code == 1
    assert "no trial" in result.stderr
    assert not any(line.rstrip().endswith(":") for line in result.stderr.splitlines())
    if words != ("simulate", "record"):
        assert result.stderr.startswith("error: empty.jsonl: holds no trial records [no-trial]\n")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "junk.jsonl"),
        ("rejudge", "junk.jsonl"),
        ("simulate", "record", "junk.jsonl"),
        ("grade", "-e", "e.yaml", "junk.jsonl"),
        ("compare", "--baseline", "junk.jsonl", "--treatment", "junk.jsonl"),
        ("ingest", "directory"),
    ],
    ids=" ".join,
)
def test_a_file_of_junk_floods_nobody(words: tuple[str, ...], vally: Vally) -> None:
    result = vally(*words)
    assert result.exit_code == 1
    assert 0 < len((result.stdout + result.stderr).splitlines()) < 40


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_store_is_not_made_for_nothing(output: str, tmp_path: Path, vally: Vally) -> None:
    result = vally("ingest", "directory", "--output", output)
    assert result.exit_code == 1
    assert "error: directory: no run found\n  a run directory holds a file results.jsonl" in result.stderr
    assert not list(tmp_path.glob("*.db*"))


@pytest.mark.parametrize("group", ["plugins", "simulate", "experiment"])
def test_a_group_without_a_subcommand_names_them(group: str, vally: Vally) -> None:
    result = vally(group)
    assert (result.exit_code, result.stdout) == (2, "")
    first, second, third = result.stderr.splitlines()
    assert first == "error: name a subcommand"
    assert second.startswith("  subcommands: ")
    assert third == f"  try 'vally {group} --help'"


def test_options_that_contradict_each_other(vally: Vally) -> None:
    result = vally("eval", "-e", "e.yaml", "--config", "c.yaml", "--no-config")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --config and --no-config exclude each other\n")


@pytest.mark.parametrize(
    "words",
    [("eval", "-e", "golden.yaml"), ("oracle", "-e", "golden.yaml"), ("experiment", "run", "x.yaml")],
    ids=" ".join,
)
def test_a_file_in_the_place_of_the_workspaces_is_told_before_the_run(
    words: tuple[str, ...], tmp_path: Path, vally: Vally
) -> None:
    variants = "variants: {a: {overrides: {model: m1}}, b: {overrides: {model: m2}}}"
    (tmp_path / "x.yaml").write_text(f"name: x\nevals: [golden.yaml]\nvary: [/defaults/model]\n{variants}\n")
    graders = "graders: [{type: file-exists, config: {path: made}}]"
    golden = f"stimuli: [{{name: s, prompt: p, {graders}, golden_command: touch made}}]"
    (tmp_path / "golden.yaml").write_text(f"name: e\ndefaults: {{executor: mock}}\n{golden}\n")
    result = vally(*words, "--workspace", "e.yaml")
    assert (result.exit_code, result.stderr) == (1, "error: --workspace: 'e.yaml' is not a directory\n")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith("-results")]
    assert vally(*words, "--workspace", "new").exit_code == 0


def test_a_directory_in_the_place_of_the_comparison_is_told_before_judges_are_asked(vally: Vally) -> None:
    result = vally("compare", "--baseline", "empty.jsonl", "--treatment", "empty.jsonl", "--output", "directory")
    assert (result.exit_code, result.stderr) == (1, "error: --output: 'directory' is a directory\n  name a file\n")
    below = vally("compare", "--baseline", "empty.jsonl", "--treatment", "empty.jsonl", "--output", "e.yaml/x.jsonl")
    assert (below.exit_code, below.stderr) == (1, "error: --output: cannot write 'e.yaml/x.jsonl': Not a directory\n")


def test_a_place_that_may_not_be_written_is_told_before_judges_are_asked(
    vally: Vally, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so that modes alone would test nothing then.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "directory" or not mode & os.W_OK)
    words = ["--baseline", "empty.jsonl", "--treatment", "empty.jsonl", "--output", "directory/x.jsonl"]
    result = vally("compare", *words)
    expected = "error: --output: cannot write 'directory/x.jsonl': Permission denied\n"
    assert (result.exit_code, result.stderr) == (1, expected)


@pytest.mark.parametrize("words", [["runs", "."], ["ingest", "."], ["show"]], ids=" ".join)
def test_a_directory_that_may_not_be_read_hides_no_other_run(
    words: list[str], write_run: RunWriter, make: Make, vally: Vally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(*make.three_trials())
    closed = tmp_path / "vally-results" / "2099-01-01T00-00-00-000Z"
    closed.mkdir()
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        # As permissions do, which bind not everybody.
        if path.parent == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    result = vally(*words)
    assert result.exit_code == 0, result.stderr
    assert "3" in result.stdout


def test_a_trial_that_cannot_be_shown_is_an_error(tmp_path: Path, vally: Vally) -> None:
    (tmp_path / "broken.jsonl").write_text('{"stimulus": "s", "trajectory": {"output": "x", "events": [5]}}\n')
    result = vally("show", "broken.jsonl", "--trial", "0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "/trajectory/events/0 must be an object" in result.stderr
    assert "error: none of the selected trials can be read [bad-record]\n" in result.stderr
