"""A small experiment: two evals in two variants whose agents give other answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally.testing import CliResult, run_cli

STIMULI = {"first": ("one", "two"), "second": ("three",)}


@dataclass(frozen=True)
class Experiments:
    """An experiment below `root`, whose variants stage the fixtures of `answers`."""

    root: Path

    def make(self, answers: Mapping[str, str], *, runs: int = 2, extra: Mapping[str, Any] | None = None) -> None:
        """Write the evals and `experiment.json`; `answers` are outputs by variant, `right` being the passing one."""
        for name, stimuli in STIMULI.items():
            self.json(
                f"{name}/eval.yaml",
                {
                    "name": name,
                    "defaults": {"runs": runs, "executor": {"name": "mock"}},
                    "stimuli": [_stimulus(stimulus) for stimulus in stimuli],
                },
            )
        for variant, answer in answers.items():
            for stimulus in [item for stimuli in STIMULI.values() for item in stimuli]:
                self.json(f"fixtures/{variant}/{stimulus}.json", {"output": answer})
        variants = {
            variant: {"environment": {"files": [{"src": f"fixtures/{variant}", "dest": ".mock-executor"}]}}
            for variant in answers
        }
        document = {
            "name": "trial of variants",
            "evals": ["*/eval.yaml"],
            "vary": ["/environment/files"],
            "variants": variants,
            "baseline": next(iter(answers)),
        }
        self.json("experiment.yaml", {**document, **(extra or {})})

    def json(self, path: str, document: object) -> Path:
        """Write a document."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(document))
        return target

    def fixture(self, variant: str, stimulus: str, **document: Any) -> None:
        """Change what the agent of a variant does."""
        self.json(f"fixtures/{variant}/{stimulus}.json", {"output": "right", **document})

    def vally(self, *words: str, plugins: Sequence[object] = (), **options: Any) -> CliResult:
        """Run the program."""
        return run_cli(list(words), cwd=self.root, plugins=list(plugins), **options)

    def run(self, *words: str, **options: Any) -> CliResult:
        """Run the experiment."""
        return self.vally("experiment", "run", "experiment.yaml", *words, **options)

    @property
    def directory(self) -> Path:
        """The newest run directory."""
        return max((self.root / "vally-experiment-results").iterdir(), key=lambda path: path.name)

    def document(self, name: str) -> dict[str, Any]:
        """A JSON document of the newest run."""
        return dict(json.loads((self.directory / name).read_text()))

    @staticmethod
    def records(path: Path) -> list[dict[str, Any]]:
        """The lines of a file."""
        return [json.loads(line) for line in path.read_text().splitlines()]


def _stimulus(name: str) -> dict[str, Any]:
    return {"name": name, "prompt": "p", "graders": [{"type": "output-contains", "config": {"substring": "right"}}]}
