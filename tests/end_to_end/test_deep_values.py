"""Values nested nearly as deep as Python can recurse pass through running, grading, recording and grading again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vally.testing import run_cli

pytestmark = pytest.mark.heavy

EMOJI = '"\\ud83d\\ude00"'
GRADERS = [
    {"type": "tool-calls", "config": {"required": [{"name": "t", "pattern": "\U0001f600", "result": "a"}]}},
    {"type": "max-repeat", "config": {"max": 1, "match": "name-args"}},
    {"type": "program", "config": {"program": "true"}},
]


@pytest.mark.parametrize("depth", [250, 700, 900])
def test_deep_arguments_and_results(tmp_path: Path, depth: int) -> None:
    nested = '{"a":' * depth + EMOJI + "}" * depth
    call = '{"type":"tool_call","data":{"toolName":"t","toolCallId":"1","arguments":' + nested + "}}"
    result = '{"type":"tool_result","data":{"toolName":"t","toolCallId":"1","success":true,"result":' + nested + "}}"
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "s.json").write_text('{"events":[' + call + "," + result + '],"output":"ok"}')
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures", "strict": True}}
    spec = {
        "name": "e",
        "defaults": {"executor": executor},
        "stimuli": [{"name": "s", "prompt": "p", "graders": GRADERS}],
    }
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    words = ["-e", "eval.yaml", "--require-pass"]
    run = run_cli(["eval", *words, "--workspace", "work"], cwd=tmp_path)
    assert run.exit_code == 0, run.stderr
    assert run.run_dir is not None
    again = run_cli(["grade", *words, str(run.run_dir), "--output", "jsonl"], cwd=tmp_path)
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[0])["gradeResult"]["passed"]
