"""Specs of other tools, run through an eval provider."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from vally import EvalProviderSpec, ForeignSpec, VallyError
from vally.testing import ScriptedExecutor, run_cli


class Provider:
    """Reads `*.foreign`: one prompt per line."""

    scratch: Path | None = None

    def __init__(self, word: str = "") -> None:
        self._word = word

    def detect(self, path: Path) -> bool:
        return path.read_text().startswith("foreign")

    async def load(self, path: Path, context: Any) -> Any:
        if self._word == "raise":
            raise RuntimeError("cannot read this")
        if self._word == "refuse":
            raise VallyError("line 2 makes no sense", where=f"{path.name}:2")
        if self._word == "mapping":
            return {}
        Provider.scratch = context.scratch_dir
        (context.scratch_dir / "given.txt").write_text("given\n")
        prompts = path.read_text().splitlines()[1:]
        stimuli = [
            {
                "name": prompt,
                "prompt": prompt,
                "environment": {"files": [{"src": "given.txt", "dest": "given.txt"}]},
                "graders": [{"type": "file-exists", "config": {"path": "given.txt"}}],
            }
            for prompt in prompts
        ]
        spec = {"name": "foreign", "defaults": {"executor": "script"}, "stimuli": stimuli}
        return ForeignSpec(spec=spec, base_dir=context.scratch_dir, warnings=("half of it was understood",))


def run(root: Path, *words: str, word: str = "") -> Any:
    provider = EvalProviderSpec(
        name="lines", summary="reads lines", factory=lambda: Provider(word), patterns=("*.foreign",)
    )
    plugins = [ScriptedExecutor(["done"]).record("script"), provider]
    return run_cli(["eval", "-e", "a.foreign", "--output-dir", "out", *words], cwd=root, plugins=plugins)


def test_a_foreign_spec_runs_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.foreign").write_text("foreign\nfirst\nsecond\n")
    result = run(tmp_path, "--eval-plugin", "lines", "--output", "json", "--require-pass")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert [item["name"] for item in report["evals"][0]["stimuli"]] == ["first", "second"]
    assert "warning: a.foreign: half of it was understood" in result.stderr
    assert Provider.scratch is not None
    assert Provider.scratch.is_relative_to(Path(tempfile.gettempdir()).resolve()) or not Provider.scratch.exists()
    assert not Provider.scratch.exists()


def test_the_provider_of_the_project_is_used_without_the_option(tmp_path: Path) -> None:
    (tmp_path / ".vally.yaml").write_text("evalProvider: lines\n")
    (tmp_path / "a.foreign").write_text("foreign\nfirst\n")
    assert run(tmp_path).exit_code == 0


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("raise", "plugin 'lines': RuntimeError: cannot read this [eval-provider-failed]"),
        ("refuse", "a.foreign:2: line 2 makes no sense"),
        ("mapping", "plugin 'lines': dict is not a ForeignSpec [eval-provider-failed]"),
    ],
)
def test_a_provider_that_fails_is_one_line(word: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.foreign").write_text("foreign\nfirst\n")
    result = run(tmp_path, "--eval-plugin", "lines", word=word)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["--suite", "smoke"], []], ids=["with-suite", "without-spec"])
def test_wrong_combinations(words: list[str], tmp_path: Path) -> None:
    specs = ["-e", "a.foreign"] if words else []
    result = run_cli(["eval", *specs, "--eval-plugin", "lines", *words], cwd=tmp_path)
    assert result.exit_code == 2
    assert "--eval-plugin needs --eval-spec, and cannot be combined with --suite" in result.stderr


def test_an_unknown_provider_lists_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.foreign").write_text("foreign\nfirst\n")
    result = run(tmp_path, "--eval-plugin", "linse")
    assert result.exit_code == 1
    assert "lines" in result.stderr
