"""The same eval gives the same records on every backend, apart from ids, times, paths and what ran it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest
from containers import Engine, podman

from vally.testing import MockLlm, ProjectBuilder, run_cli


@dataclass(frozen=True)
class Candidate:
    """A backend, why it cannot be tried here (None: it can), and the marks of its test.

    `engine` makes ready what it runs trials in, with arguments and variables for it.
    """

    name: str
    skip: str | None = None
    marks: tuple[pytest.MarkDecorator, ...] = ()
    engine: Callable[[], Engine] | None = None


HEAVY = pytest.mark.heavy
CANDIDATES = (
    Candidate("sandbox", skip=None if shutil.which("bwrap") else "bubblewrap is not installed"),
    Candidate(
        "ray",
        skip=None if find_spec("ray") else "Ray is not installed",
        marks=(HEAVY, pytest.mark.xdist_group("ray")),
    ),
    Candidate("podman", marks=(HEAVY, pytest.mark.xdist_group("containers")), engine=podman),
)

CHANGING = {
    "runId",
    "startedAt",
    "completedAt",
    "durationMs",
    "phases",
    "timestamp",
    "wallTimeMs",
    "sessionID",
    "latencyMs",
}
PLACES = {"id", "trajectoryId", "workDir", "workspacePath", "artifactDir", "assetsDir", "backend"}
KEY = "the-judge-key-48151623"
GRADE = {
    "rubric_scores": [{"criterion": "It is done.", "score": 4, "reasoning": "r"}],
    "overall_score": 4,
    "overall_reasoning": "well done",
}
WORDS = '''
from vally import Config, GraderResult, grader

class Limit(Config):
    max: int

@grader("words", config=Limit)
def words(input):
    """Counts words."""
    count = len(input.trajectory.output.split())
    return GraderResult.verdict(count <= input.config.max, f"{count} words")
'''
CHECK = """#!/bin/sh
cmp made.txt expected.txt && echo '{"passed": true, "score": 1, "evidence": "same"}'
"""


def stimuli() -> list[dict[str, Any]]:
    """What agents are asked, one for each thing that a backend does."""
    golden = {"src": "../../shared/golden.txt", "dest": "golden.txt"}
    return [
        {
            "name": "everything",
            "prompt": "make it",
            "environment": {
                "files": [golden, {"src": "data", "dest": "data"}],
                "skills": ["../../skills/tidy"],
                "commands": ["cp golden.txt copy.txt"],
                "env": {"MODE": "x"},
            },
            "grading_environment": {"files": [{"src": "expected.txt", "dest": "."}, {"src": "check.sh", "dest": "."}]},
            "artifacts": {"include": ["made.txt", "data/**"]},
            "graders": [
                {"type": "file-exists", "config": {"path": "made.txt"}},
                {"type": "file-exists", "config": {"path": "expected.txt"}},
                {"type": "diff-contains", "config": {"value": "golden"}},
                {"type": "words", "config": {"max": 3}},
                {"type": "program", "config": {"program": "sh", "args": ["./check.sh"]}},
                {"type": "run-command", "config": {"command": "cat copy.txt", "stdout_contains": "golden"}},
            ],
        },
        {
            "name": "turns",
            "turns": ["one", "two"],
            "graders": [
                {"type": "diff-contains", "turn": 0, "config": {"value": "first"}},
                {"type": "diff-contains", "turn": 1, "config": {"value": "second"}},
            ],
        },
        {
            "name": "repository",
            "prompt": "look",
            "environment": {"git": {"type": "worktree", "source": "../.."}},
            "graders": [{"type": "file-exists", "config": {"path": "shared/golden.txt"}}, {"type": "diff-empty"}],
        },
        {"name": "large", "prompt": "much", "graders": [{"type": "diff-contains", "config": {"value": "line 9999"}}]},
        {
            "name": "judged",
            "prompt": f"!grade {json.dumps(GRADE)}",
            "rubric": ["It is done."],
            "graders": [{"type": "prompt"}],
        },
        {"name": "error", "prompt": "fail", "graders": [{"type": "completed"}]},
        {"name": "skip", "prompt": "skip", "graders": [{"type": "completed"}]},
        {"name": "late", "prompt": "wait", "graders": [{"type": "completed"}]},
        {
            "name": "set-up",
            "prompt": "never",
            "environment": {"commands": ["echo no >&2; exit 3"]},
            "graders": [{"type": "completed"}],
        },
    ]


FIXTURES: Mapping[str, Any] = {
    "everything": {"output": "made it", "files": {"made.txt": "golden\n", "data/x.txt": None, "data/y.txt": "new\n"}},
    "turns": {
        "turns": [
            {"output": "a", "files": {"first.txt": "first\n"}},
            {"output": "b", "files": {"second.txt": "second\n"}},
        ]
    },
    "large": {"output": "done", "files": {"big.txt": "".join(f"line {number}\n" for number in range(40_000))}},
    "judged": {"output": "done"},
    "error": {"error": {"message": "down", "code": "provider-error"}},
    "skip": {"skip": "not today"},
    "late": {"delayMs": 60_000, "output": "late"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[MockLlm]:
    with MockLlm(api_key=KEY) as running:
        yield running


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, server: MockLlm) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path_factory.mktemp("project"))
    made.file("shared/golden.txt", "golden\n")
    made.file("plug/words.py", WORDS)
    made.file(".vally.yaml", json.dumps({"plugins": {"graders": ["./plug/words.py"]}}))
    made.skill("tidy", "Tidy up.")
    made.file("evals/a/data/x.txt", "x\n")
    made.file("evals/a/expected.txt", "golden\n")
    made.file("evals/a/check.sh", CHECK)
    for name, fixture in FIXTURES.items():
        made.file(f"evals/a/fixtures/{name}.json", json.dumps(fixture))
    provider = {"type": "openai", "baseUrl": f"{server.url}/v1", "apiKeyEnv": "MY_JUDGE"}
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    defaults = {"executor": executor, "timeout": "3s", "judge_model": "judge-1", "judge_provider": provider}
    made.file("evals/a/eval.yaml", json.dumps({"name": "a", "defaults": defaults, "stimuli": stimuli()}))
    made.git()
    return made


def evaluate(project: ProjectBuilder, candidate: Candidate, output: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The trial records of a run by item, and the files that it made beside them."""
    engine = candidate.engine() if candidate.engine is not None else None
    words, env = (engine.words, engine.env) if engine is not None else ([], {})
    arguments = ["eval", "-e", "evals/a/eval.yaml", "--backend", candidate.name, *words, "--output-dir", output]
    result = run_cli([*arguments, "--seed", "7"], cwd=project.root, env={**env, "MY_JUDGE": KEY})
    assert "Traceback" not in result.stderr
    assert result.exit_code == 1, result.stderr  # some stimuli are errors, as they should be
    assert result.run_dir is not None
    records = {record["itemId"]: record for record in result.records if record["type"] == "trial-result"}
    reports = {"results.jsonl", "run-manifest.json", "otel-spans.jsonl", "eval-results.md"}
    files = {
        path.relative_to(result.run_dir).as_posix(): path.read_bytes()
        for path in sorted(result.run_dir.rglob("*"))
        if path.is_file() and path.name not in reports
    }
    return records, files


def comparable(record: Mapping[str, Any]) -> Any:
    """A record without what differs between two runs of the same trial."""
    trajectory = record.get("trajectory") or {}
    work_dir = trajectory.get("workDir") or "no work directory"

    def settled(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: settled(item) for key, item in value.items() if key not in CHANGING | PLACES}
        if isinstance(value, list):
            return [settled(item) for item in value]
        return value.replace(work_dir, "<work>") if isinstance(value, str) else value

    return settled(record)


@pytest.fixture(scope="module")
def on_local(project: ProjectBuilder) -> tuple[dict[str, Any], dict[str, bytes]]:
    records, files = evaluate(project, Candidate("local"), "out-local")
    told = {record["stimulus"]: record["status"] for record in records.values()}
    assert told == {item["name"]: "success" for item in stimuli()} | {
        "error": "error",
        "set-up": "error",
        "skip": "skipped",
    }
    passed = {record["stimulus"] for record in records.values() if (record["gradeResult"] or {}).get("passed")}
    assert passed >= {"everything", "turns", "repository", "large", "judged"}
    assert any(name.endswith("workspace.diff") for name in files)
    ends = {record["stimulus"]: (record["trajectory"] or {}).get("endReason") for record in records.values()}
    assert ends["late"] == "agent_timeout"
    return records, files


@pytest.mark.parametrize(
    "candidate", [pytest.param(candidate, id=candidate.name, marks=candidate.marks) for candidate in CANDIDATES]
)
def test_records_and_files_are_those_of_local(
    candidate: Candidate, project: ProjectBuilder, on_local: tuple[dict[str, Any], dict[str, bytes]]
) -> None:
    if candidate.skip:
        pytest.skip(candidate.skip)
    expected, expected_files = on_local
    records, files = evaluate(project, candidate, f"out-{candidate.name}")
    assert {key: comparable(record) for key, record in records.items()} == {
        key: comparable(record) for key, record in expected.items()
    }
    assert files == expected_files
