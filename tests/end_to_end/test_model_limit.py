"""`--max-per-model` bounds the trials that run at once with one model, and holds up no other."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorSpec, Trajectory, TrajectoryBuilder
from vally.testing import run_cli


class Counting:
    """Knows how many of its trials ran at once with each model."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def execute(self, stimulus: Any, options: Any) -> Trajectory:
        """Take a moment."""
        self.running[options.model] += 1
        self.most[options.model] = max(self.most[options.model], self.running[options.model])
        await anyio.sleep(0.02)
        self.running[options.model] -= 1
        return TrajectoryBuilder(stimulus, options, executor="counting").finish("completed")

    async def shutdown(self) -> None:
        """Nothing to end."""


@pytest.mark.parametrize(("words", "most"), [([], 4), (["--max-per-model", "2"], 2), (["--max-per-model", "1"], 1)])
def test_no_model_has_more_trials_at_once(words: list[str], most: int, tmp_path: Path) -> None:
    spec = {"name": "e", "defaults": {"executor": "counting"}, "stimuli": [{"name": "s", "prompt": "p"}]}
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    counting = Counting()
    record = ExecutorSpec(name="counting", summary="counts", factory=lambda: counting)
    options = ["--model", "a,b", "--runs", "8", "--workers", "4", "--skip-grade", *words]
    result = run_cli(["eval", "-e", "eval.yaml", *options], cwd=tmp_path, plugins=[record])
    assert result.exit_code == 0, result.stderr
    assert len(result.records) == 16 + 1
    assert max(counting.most.values()) == most
    assert set(counting.most) == {"a", "b"}
