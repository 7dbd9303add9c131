"""Builders of events, trajectories and projects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from vally import Metrics, load_eval_spec, load_project
from vally.testing import ProjectBuilder, event, trajectory


def test_events_take_keys_in_snake_case() -> None:
    made = event("tool_call", tool_name="bash", tool_call_id="c1", arguments={"keep_this": 1}, turn=1, agent_id="sub")
    assert made.model_dump(by_alias=True, exclude_none=True) == {
        "type": "tool_call",
        "turn": 1,
        "agentId": "sub",
        "data": {"toolName": "bash", "toolCallId": "c1", "arguments": {"keep_this": 1}},
    }


def test_events_take_keys_as_on_disk() -> None:
    assert event("system", eventType="compaction").data == {"eventType": "compaction"}


def test_what_follows_from_the_events_is_computed() -> None:
    made = trajectory(
        event("assistant_message", content="working"),
        event("tool_call", tool_name="bash", tool_call_id="1"),
        event("assistant_message", content="of a helper", agent_id="helper"),
        event("assistant_message", content="done"),
        event("turn_end", turn_id="0"),
    )
    assert made.output == "done"
    assert made.metrics is not None
    assert (made.metrics.tool_call_count, made.metrics.turn_count) == (1, 1)
    assert (made.end_reason, made.stimulus["prompt"]) == ("completed", "Do it.")


def test_given_fields_win() -> None:
    made = trajectory(output="given", metrics=Metrics(turn_count=7), end_reason="budget", turns=["a", "b"])
    assert (made.output, made.end_reason, made.stimulus["turns"]) == ("given", "budget", ["a", "b"])
    assert made.metrics is not None
    assert made.metrics.turn_count == 7
    assert made.stimulus["prompt"] == "a\n\nb"


def test_a_project_is_valid(tmp_path: Path) -> None:
    project = ProjectBuilder(tmp_path)
    skill = project.skill("tidy", "Sort the list.")
    project.file("data/list.txt", "b\na\n")
    project.project(paths={"skills": ["skills/"]})
    spec_file = project.eval(
        "sorting",
        ["Sort data/list.txt", {"name": "two-turns", "turns": ["one", "two"]}],
        defaults={"runs": 2},
        environment={"skills": ["../../skills/tidy"]},
    )
    spec = load_eval_spec(spec_file, project=load_project(tmp_path / ".vally.yaml"))
    assert [(stimulus.name, stimulus.turns) for stimulus in spec.stimuli] == [
        ("stimulus-1", ("Sort data/list.txt",)),
        ("two-turns", ("one", "two")),
    ]
    assert spec.defaults.runs == 2
    assert spec.stimuli[0].environment.skills == (skill,)


def test_an_experiment_names_its_variants(tmp_path: Path) -> None:
    written = json.loads(ProjectBuilder(tmp_path).experiment(baseline="off").read_text())
    assert (written["evals"], list(written["variants"]), written["baseline"]) == (
        ["evals/*/eval.yaml"],
        ["off", "on"],
        "off",
    )


@pytest.mark.parametrize("hostile", ["commit.gpgsign=true", "core.hooksPath=/nowhere"])
def test_a_repository_ignores_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str) -> None:
    name, _, value = hostile.partition("=")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", name)
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", value)
    project = ProjectBuilder(tmp_path / "repo")
    project.file("a.txt", "one")
    first = project.git()
    project.file("a.txt", "two")
    assert project.git("change") != first
    log = subprocess.run(
        ["git", "log", "--format=%s %an"], cwd=project.root, check=True, capture_output=True, text=True
    ).stdout
    assert log == "change Test\nstart Test\n"
