"""Rows of the executor `mock` that need a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vally.testing import CliResult, run_cli


def run(root: Path, fixture: dict[str, Any], stimulus: dict[str, Any], *args: str) -> CliResult:
    (root / "fixtures").mkdir()
    (root / "fixtures" / "s.json").write_text(json.dumps(fixture))
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures", "strict": True}}
    spec = {"name": "e", "defaults": {"executor": executor}, "stimuli": [{"name": "s", "prompt": "hi", **stimulus}]}
    (root / "eval.yaml").write_text(json.dumps(spec))
    return run_cli(["eval", "-e", "eval.yaml", *args], cwd=root)


def test_files_of_a_fixture_are_in_the_diff(tmp_path: Path) -> None:
    graders = [{"type": "diff-contains", "config": {"value": "+1"}}]
    result = run(tmp_path, {"files": {"a.txt": "1\n"}, "output": "ok"}, {"graders": graders}, "--require-pass")
    record = result.records[0]
    assert (result.exit_code, record["status"], record["trajectory"]["output"]) == (0, "success", "ok")


def test_a_retryable_error_is_tried_again_and_its_code_kept(tmp_path: Path) -> None:
    error = {"message": "down", "code": "provider-error", "retryable": True}
    record = run(tmp_path, {"error": error}, {}, "--max-retries", "1").records[0]
    assert (record["status"], record["error"], record["attempts"]) == ("error", "down", 2)
    assert (record["errorInfo"]["code"], record["errorInfo"]["phase"]) == ("provider-error", "running")


def test_a_delay_beyond_the_timeout_gives_a_trajectory(tmp_path: Path) -> None:
    record = run(tmp_path, {"delayMs": 60000}, {}, "--timeout", "1s").records[0]
    assert (record["status"], record["trajectory"]["endReason"]) == ("success", "agent_timeout")
    assert record["phases"]["agentMs"] < 10_000


def test_turn_diffs_of_scripted_turns(tmp_path: Path) -> None:
    fixture = {"turns": [{"files": {"a": "first\n"}}, {"files": {"a": "second\n"}}]}
    graders = [
        {"type": "diff-contains", "turn": 0, "config": {"value": "+first"}},
        {"type": "diff-contains", "turn": 1, "config": {"value": "+second"}},
    ]
    result = run(tmp_path, fixture, {"prompt": None, "turns": ["a", "b"], "graders": graders}, "--require-pass")
    assert result.exit_code == 0, result.stderr
