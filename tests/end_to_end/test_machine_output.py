"""What programs read from standard output is UTF-8, whatever encoding people have there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vally.testing import ProjectBuilder

STIMULUS = {
    "name": "schnee ☃",
    "prompt": "hellö",
    "golden_command": "echo > ö",
    "graders": [{"type": "file-exists", "config": {"path": "ö"}}],
}
EXPERIMENT = {
    "name": "ex ☃",
    "baseline": "ä",
    "vary": ["/defaults/model"],
    "variants": {"ä": {"overrides": {"model": "m1"}}, "b☃": {"overrides": {"model": "m2"}}},
    "evals": ["é.yaml"],
}
COMMANDS = [
    "eval -e é.yaml --output json",
    "eval -e é.yaml --output jsonl",
    "eval -e é.yaml --dry-run --output json",
    "eval -e é.yaml --dry-run --output jsonl",
    "experiment run é-experiment.yaml --dry-run --output json",
    "experiment run é-experiment.yaml --dry-run --output jsonl",
    "experiment run é-experiment.yaml --output json",
    "experiment merge shards/x/shard-1-of-1 -o merged --output json",
    "grade -e é.yaml latest --output jsonl",
    "lint -e é.yaml --severity rubric-without-llm-judge=off --output json",
    "lint -e é.yaml --output sarif",
    "oracle -e é.yaml --output json",
    "show latest --output json",
    "runs --output json",
    "ingest latest --dry-run --output json",
    "plugins list --output json --grader-plugin ./é.py",
]


def vally(root: Path, command: str, encoding: str) -> bytes:
    argv = [sys.executable, "-m", "vally", *command.split()]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "VALLY_CACHE_DIR": str(root / "cache")}
    return subprocess.run(
        argv, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    ).stdout


@pytest.mark.heavy
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_machine_output_is_utf_8(tmp_path: Path, encoding: str) -> None:
    made = ProjectBuilder(tmp_path)
    made.yaml("é.yaml", {"name": "ünï ☃", "defaults": {"executor": "mock"}, "stimuli": [STIMULUS]})
    made.yaml("é-experiment.yaml", EXPERIMENT)
    vally(tmp_path, "experiment run é-experiment.yaml --shard 1/1 --run-id x --output-dir shards", encoding)
    for command in COMMANDS:
        text = vally(tmp_path, command, encoding).decode()
        lines = text.splitlines() if "jsonl" in command else [text]
        documents = [json.loads(line) for line in lines]
        assert documents, command
        assert not text.isascii() or "sarif" in command, command
