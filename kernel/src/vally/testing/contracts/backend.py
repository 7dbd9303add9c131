"""The contract of backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally.errors import BackendError
from vally.testing.contracts import agent
from vally.testing.contracts.agent import say, seen, wait, write
from vally.testing.contracts.backend_subject import (
    BackendSubject,
    details,
    entry,
    options_for,
    python_command,
    run_trial,
)
from vally.testing.contracts.case import Case
from vally.testing.projects import ProjectBuilder
from vally.testing.sentinels import process_sentinel, tree_digest
from vally.testing.trials import stimulus, trial_item

if TYPE_CHECKING:
    from vally.model.results import GraderResult
    from vally.records import BackendSpec

MANY = 20
AT_ONCE = 5
STOP_LIMIT_S = 20.0


def backend_contract(
    factory: BackendSpec | Callable[[], Any],
    args: Mapping[str, str | list[str]] | None = None,
    env: Mapping[str, str] | None = None,
) -> list[Case]:
    """Cases every backend passes; `factory` is its record, or makes the object.

    `args` is what `prepare` is given, `env` are variables of the run beside those that every program needs.
    """
    checks = {
        "environment-order": _environment_order,
        "setup-failure": _setup_failure,
        "diff": _diff,
        "turn-diff": _turn_diff,
        "artifacts": _artifacts,
        "cancel": _cancel,
        "executor-crash": _executor_crash,
        "executor-error": _executor_error,
        "cleanup": _cleanup,
        "grade-trial": _grade_trial,
        "grade-trial-without-workspace": _grade_without_workspace,
        "users-directories-untouched": _untouched,
        "shutdown": _shutdown,
        "many-at-once": _many,
    }
    return [Case(name, check, BackendSubject(factory, args or {}, env or {})) for name, check in checks.items()]


async def _environment_order(subject: BackendSubject, directory: Path) -> None:
    from vally.model.evalspec import Environment, StagedFile

    source = ProjectBuilder(directory / "source")
    staged = StagedFile(src=source.file("a.txt", "staged"), dest="a.txt")
    late = StagedFile(src=source.file("late.txt", "late"), dest="late.txt")
    copy = python_command("import shutil; shutil.copy(chr(97)+chr(46)+chr(116)+chr(120)+chr(116), chr(98))")
    given = stimulus(
        environment=Environment(skills=(source.skill("tidy"),), files=(staged,), commands=(copy,)),
        grading_environment=Environment(files=(late,)),
        graders=(entry("contract-file", path="late.txt"), entry("contract-diff")),
    )
    skills = (source.root / "skills" / "tidy",)
    outcome = await subject.run(directory, given, [agent.LOOK, write({"made.txt": "made"})], skills=skills)
    files = seen(outcome)["files"]
    for name in ("a.txt", "b", "tidy/SKILL.md"):
        assert name in files, f"the agent did not find {name}, only {files}"
    assert "late.txt" not in files, "the agent saw the grading environment"
    file, diff = details(outcome)
    assert file.evidence == "late", "graders did not see the grading environment"
    assert "made.txt" in diff.evidence, "the diff lacks what the agent made"
    assert "a.txt" not in diff.evidence, "the diff holds what was staged"


async def _setup_failure(subject: BackendSubject, directory: Path) -> None:
    from vally.model.evalspec import Environment

    command = python_command("raise SystemExit(3)")
    given = stimulus(environment=Environment(commands=(command,)), graders=(entry("contract-diff"),))
    outcome = await subject.run(directory, given, [say("must not be said")])
    assert outcome.status == "error"
    assert outcome.trajectory is None, "the agent ran although the set-up failed"
    assert outcome.grade is None, "a failed set-up must not be graded"
    assert outcome.error is not None
    assert outcome.error.message.startswith(f"Setup command failed (exit 3): {command}"), outcome.error.message
    assert outcome.error.phase == "preparing"


async def _diff(subject: BackendSubject, directory: Path) -> None:
    given = stimulus(graders=(entry("contract-diff"),))
    outcome = await subject.run(directory, given, [write({"new.txt": "one line\n"}), say("done")])
    (result,) = details(outcome)
    assert "+one line" in result.evidence, result.evidence
    assert outcome.trajectory is not None
    assert outcome.trajectory.output == "done"
    assert outcome.trajectory.diff_error is None


async def _turn_diff(subject: BackendSubject, directory: Path) -> None:
    graders = (entry("contract-diff", turn=0), entry("contract-diff", turn=1))
    given = stimulus("first", "second", graders=graders)
    outcome = await subject.run(directory, given, [[write({"one.txt": "1\n"})], [write({"two.txt": "2\n"})]])
    first, second = details(outcome)
    assert "one.txt" in first.evidence, first.evidence
    assert "two.txt" not in first.evidence, first.evidence
    assert "two.txt" in second.evidence, second.evidence
    assert "one.txt" not in second.evidence, second.evidence


async def _artifacts(subject: BackendSubject, directory: Path) -> None:
    from vally.model.evalspec import Artifacts

    given = stimulus(artifacts=Artifacts(include=("out/**",), exclude=("**/*.tmp",)))
    files = {"out/a.txt": "kept", "out/deep/b.txt": "kept", "out/c.tmp": "left", "d.txt": "left"}
    target = directory / "run" / "trial-0"
    outcome = await subject.run(directory, given, [write(files)], output_dir=target, run_dir=directory / "run")
    assert outcome.trajectory is not None
    assert outcome.trajectory.artifact_dir is not None, "artifactDir is not set"
    kept = Path(outcome.trajectory.artifact_dir)
    found = sorted(path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file())
    assert found == ["out/a.txt", "out/deep/b.txt"], found


async def _cancel(subject: BackendSubject, directory: Path) -> None:
    from vally.run.inputs import StopSignal

    stop, outcomes, running = StopSignal(), [], anyio.Event()
    given = stimulus(graders=(entry("contract-diff"),))

    def phase(name: str, _: str | None) -> None:
        if name == "running":
            running.set()

    async with subject.prepared(directory) as backend:

        async def run() -> None:
            script = [write({"x.txt": "x"}), wait(600)]
            outcomes.append(await run_trial(backend, directory, given, script, stop=stop, on_phase=phase))

        with anyio.fail_after(STOP_LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await running.wait()
                await anyio.sleep(0.2)
                assert not outcomes, "the agent was to work until it is stopped"
                stop.set("cancelled")
        (outcome,) = outcomes
        await outcome.cleanup()
    assert outcome.grade is None, "a cancelled trial must not be graded"
    assert outcome.work_dir is None or not outcome.work_dir.exists(), "the workspace is left"


async def _executor_crash(subject: BackendSubject, directory: Path) -> None:
    outcome = await subject.run(directory, stimulus(), [agent.crash("went wrong")])
    assert outcome.status == "error"
    assert outcome.error is not None
    assert outcome.error.code == "executor-exception", outcome.error.code
    assert outcome.error.message == "RuntimeError: went wrong", outcome.error.message
    assert not outcome.error.retryable


async def _executor_error(subject: BackendSubject, directory: Path) -> None:
    error = agent.fail("slow down", code="provider-rate-limit", retryable=True, retry_after_ms=1500)
    outcome = await subject.run(directory, stimulus(), [say("working"), error])
    assert outcome.status == "error"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == ("provider-rate-limit", "slow down")
    assert outcome.error.retryable, "the retryable flag is lost"
    assert outcome.retry_after_ms == 1500, "the wait before a retry is lost"


async def _cleanup(subject: BackendSubject, directory: Path) -> None:
    async with subject.prepared(directory) as backend:
        outcome = await run_trial(backend, directory, stimulus(), [write({"x.txt": "x"}), agent.LOOK])
        found = seen(outcome)
        for number in (1, 2):
            warnings = await outcome.cleanup()
            assert not warnings, f"call {number} of cleanup gave warnings: {list(warnings)}"
        for path in (found["workDir"], found["trialDir"]):
            assert not Path(path).exists(), f"{path} is left"


async def _grade_trial(subject: BackendSubject, directory: Path) -> None:
    from vally.run.trial import GradeRequest

    given = stimulus(graders=(entry("contract-file", path="x.txt"),))
    async with subject.prepared(directory) as backend:
        outcome = await run_trial(backend, directory, given, [write({"x.txt": "content"})])
        assert outcome.trajectory is not None
        request = GradeRequest(
            item=trial_item(directory, given),
            trajectory=outcome.trajectory,
            options=options_for(),
            work_dir=outcome.work_dir,
        )
        graded = await backend.grade_trial(request)
        await outcome.cleanup()
    if graded.error is not None:
        assert graded.error.message == "workspace is not available", graded.error.message
    else:
        assert graded.grade.details[0].evidence == "content"


async def _grade_without_workspace(subject: BackendSubject, directory: Path) -> None:
    from vally.run.trial import GradeRequest
    from vally.testing.trajectories import trajectory

    given = stimulus(graders=(entry("contract-file", path="x.txt"),))
    gone = directory / "gone"
    async with subject.prepared(directory) as backend:
        request = GradeRequest(
            item=trial_item(directory, given),
            trajectory=trajectory(work_dir=str(gone)),
            options=options_for(),
            work_dir=gone,
        )
        graded = await backend.grade_trial(request)
    assert graded.error is not None
    assert graded.error.message == "workspace is not available", graded.error.message


async def _untouched(subject: BackendSubject, directory: Path) -> None:
    from vally.model.evalspec import Environment, GitSource, StagedFile

    source = ProjectBuilder(directory / "source")
    source.file("tracked.txt", "tracked\n")
    source.git()
    source.file("untracked.txt", "untracked\n")
    staged = StagedFile(src=source.root / "untracked.txt", dest="copied.txt")
    given = stimulus(
        environment=Environment(git=GitSource(type="worktree", source=source.root), files=(staged,)),
        graders=(entry("contract-diff"),),
    )
    before = tree_digest(source.root)
    change = write({"tracked.txt": "changed\n", "copied.txt": "changed\n"})
    outcome = await subject.run(directory, given, [change, agent.COMMIT])
    assert outcome.status == "success", outcome.error
    assert tree_digest(source.root) == before, "the repository of the user was changed"


async def _shutdown(subject: BackendSubject, directory: Path) -> None:
    with process_sentinel():
        backend = subject.create()
        await backend.shutdown()
        async with subject.prepared(directory) as used:
            await (await run_trial(used, directory, stimulus(), [say("done")])).cleanup()
        await used.shutdown()
    try:
        await run_trial(used, directory, stimulus(), [say("done")])
    except BackendError:
        return
    raise AssertionError("a backend that was shut down must refuse work")


async def _many(subject: BackendSubject, directory: Path) -> None:
    results: dict[int, Sequence[GraderResult]] = {}
    places: set[str] = set()
    limit = anyio.CapacityLimiter(AT_ONCE)
    async with subject.prepared(directory) as backend:

        async def run(number: int) -> None:
            given = stimulus(graders=(entry("contract-file", path="n.txt"), entry("contract-diff")))
            script = [write({"n.txt": f"number {number}\n"}), wait(0.05), agent.LOOK]
            async with limit:
                outcome = await run_trial(backend, directory, given, script, trial_index=number)
                results[number] = details(outcome)
                places.add(seen(outcome)["workDir"])
                await outcome.cleanup()

        async with anyio.create_task_group() as group:
            for number in range(MANY):
                group.start_soon(run, number)
    assert len(places) == MANY, "trials shared a workspace"
    for number, (file, diff) in results.items():
        assert file.evidence == f"number {number}", file.evidence
        assert f"+number {number}" in diff.evidence, diff.evidence
