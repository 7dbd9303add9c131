"""Constraints of a stimulus become required graders of the installed families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    GraderResult,
    GradingRequest,
    LocalProcessRunner,
    Metrics,
    PluginHost,
    Trajectory,
    grade_entries,
    read_eval_spec,
    resolve_grade_pass,
)
from vally.testing import ProjectBuilder, event, trajectory

HOST = PluginHost()


def graded(root: Path, stimulus: dict[str, Any], recorded: Trajectory, **spec: Any) -> tuple[GraderResult, bool]:
    """The aggregate of a stimulus as loaded from its file, and whether the trial passes."""
    path = ProjectBuilder(root).eval("e", [stimulus], **spec)
    loaded = read_eval_spec(path, host=HOST)
    assert loaded.spec is not None, [item.message for item in loaded.diagnostics]
    read = loaded.spec.stimuli[0]
    request = GradingRequest(
        trajectory=recorded,
        stimulus=read,
        scoring=loaded.spec.scoring,
        host=HOST,
        runner=LocalProcessRunner(trial_id="t", env={}),
        spec_dir=path.parent,
    )
    aggregate = anyio.run(grade_entries, request)
    assert aggregate is not None
    return aggregate, resolve_grade_pass(aggregate, loaded.spec.scoring.threshold)


def details(aggregate: GraderResult) -> dict[str, GraderResult]:
    return {detail.name: detail for detail in aggregate.details or ()}


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_an_unmet_constraint_fails_the_trial(tmp_path: Path, threshold: float) -> None:
    """CT-1."""
    recorded = trajectory(metrics=Metrics(turn_count=12), output="ok")
    stimulus = {
        "constraints": {"max_turns": 10},
        "graders": [{"type": "output-contains", "config": {"substring": "ok"}}],
    }
    aggregate, passed = graded(tmp_path, stimulus, recorded, scoring={"threshold": threshold})
    detail = details(aggregate)["constraints.max_turns"]
    assert (detail.passed, detail.evidence) == (False, "12 turns exceeds max of 10")
    assert (detail.grader_type, detail.score) == ("turn-count", pytest.approx(0.8))
    assert detail.metadata == {"value": 12, "max": 10, "required": True}
    assert (aggregate.score, passed) == (1, False)


def test_a_met_constraint_counts_as_passed(tmp_path: Path) -> None:
    """CT-2."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "out.txt").touch()
    recorded = trajectory(event("tool_call", tool_name="write_file"), work_dir=str(work))
    stimulus = {
        "constraints": {"expect_tools": ["write_file"]},
        "graders": [{"type": "file-exists", "config": {"path": "out.txt"}}],
    }
    aggregate, passed = graded(tmp_path, stimulus, recorded)
    assert (aggregate.evidence, aggregate.score, passed) == ("2/2 graders passed", 1, True)
    assert list(details(aggregate)) == ["file-exists out.txt", "constraints.expect_tools"]


def test_a_met_constraint_does_not_lift_the_score(tmp_path: Path) -> None:
    """CT-3."""
    recorded = trajectory(event("skill_activation", name="y"), output="yes")
    graders = [{"type": "output-contains", "config": {"substring": text}} for text in ("yes", "no")]
    stimulus = {"constraints": {"reject_skills": ["x"]}, "graders": graders}
    aggregate, passed = graded(tmp_path, stimulus, recorded, scoring={"threshold": 0.5})
    assert (aggregate.score, aggregate.evidence, passed) == (0.5, "2/3 graders passed", True)
    detail = details(aggregate)["constraints.reject_skills"]
    assert (detail.evidence, detail.grader_type) == ("No disallowed skills invoked", "skill-invocation")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("max_tokens", -1, id="CT-4"),
        ("max_tokens", "many"),
        ("max_turns", 1.5),
        ("max_duration", "soon"),
        ("expect_tools", ["("]),
        ("reject_tools", [5]),
        ("expect_skills", {"a": 1}),
        ("reject_skills", [""]),
    ],
)
def test_bad_values(tmp_path: Path, key: str, value: object) -> None:
    path = ProjectBuilder(tmp_path).eval("e", [{"constraints": {key: value}}])
    errors = [item for item in read_eval_spec(path, host=HOST).diagnostics if item.level == "error"]
    assert [item.code for item in errors] == ["invalid-constraint-value"]
    assert errors[0].message.startswith(f"constraints.{key}: ")


@pytest.mark.parametrize(
    ("constraints", "evidence"),
    [
        ({"max_turns": 0}, "1 turns exceeds max of 0"),
        ({"max_tokens": 15}, "15 tokens (within budget of 15)"),
        ({"max_duration": "1m30s"}, "95.0s wall time exceeds max of 1m30s"),
        ({"max_duration": 120}, "95.0s wall time (within budget of 120s)"),
        (
            {"expect_tools": ["^write", "rm"]},
            "1 of 2 tool call checks failed: Required tool 'rm' NOT called",
        ),
        (
            {"reject_tools": ["file$"]},
            "1 of 1 tool call checks failed: Disallowed tool 'file$' called 1 time(s) (first: 'write_file')",
        ),
        ({"expect_skills": ["y", "z"]}, "Required skills NOT invoked: z"),
        ({"reject_skills": ["*"]}, "Disallowed skills invoked: y"),
    ],
    ids=str,
)
def test_every_constraint_is_checked(tmp_path: Path, constraints: dict[str, Any], evidence: str) -> None:
    recorded = trajectory(
        event("tool_call", tool_name="write_file"),
        event("skill_activation", name="y"),
        event("token_usage", input_tokens=10, output_tokens=5),
        event("turn_end", turn_id="0"),
    )
    assert recorded.metrics is not None
    recorded.metrics.wall_time_ms = 95_000
    aggregate, _ = graded(tmp_path, {"constraints": constraints}, recorded)
    (key,) = constraints
    assert {name: detail.evidence for name, detail in details(aggregate).items()} == {f"constraints.{key}": evidence}


def test_constraints_come_last_and_empty_ones_not_at_all(tmp_path: Path) -> None:
    constraints = {
        "reject_skills": [],
        "expect_tools": ["a"],
        "max_turns": 1,
        "max_agent_duration": "1m",
        "reject_tools": [],
    }
    grader = {"type": "tool-calls", "config": {"required": ["a"]}}
    stimulus = {"constraints": constraints, "graders": [grader]}
    recorded = trajectory(event("tool_call", tool_name="a"))
    aggregate, passed = graded(tmp_path, stimulus, recorded, graders=[{"type": "exit-success"}])
    assert list(details(aggregate)) == [
        "exit-success",
        "tool-calls a",
        "constraints.max_turns",
        "constraints.expect_tools",
    ]
    assert not passed


def test_a_weight_of_its_own(tmp_path: Path) -> None:
    stimulus = {
        "constraints": {"max_turns": 4},
        "graders": [{"type": "output-contains", "config": {"substring": "x"}}],
    }
    weights = {"output-contains": 1, "constraints.max_turns": 3}
    recorded = trajectory(metrics=Metrics(turn_count=4), output="")
    aggregate, _ = graded(tmp_path, stimulus, recorded, scoring={"weights": weights})
    assert aggregate.score == 0.75
