"""A worker, called as Ray would call it, in this process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from event_loops import in_loop

from vally import (
    Artifacts,
    ExecutorChoice,
    GraderEntry,
    JudgeReply,
    PluginHost,
    Selection,
    TrialItem,
)
from vally.testing import ProjectBuilder, stimulus, trial_item
from vally_backend_ray.bundle import BundleFiles, make_bundle
from vally_backend_ray.hosts import host_plan, loaded_versions, local_plugins
from vally_backend_ray.link import Failure
from vally_backend_ray.messages import JudgeFacts, TrialOrder, WorkerSettings
from vally_backend_ray.outcome import RemoteOutcome
from vally_backend_ray.pickling import packed, unpacked
from vally_backend_ray.worker import Worker

# Hosts of workers find what is installed, and here that must be these.
NEEDED = ("vally_executor_mock", "vally_grader_diff", "vally_grader_files", "vally_grader_prompt")
MISSING = [name for name in NEEDED if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
ENV = {"PATH": os.environ["PATH"]}


def settings(tmp_path: Path, **fields: Any) -> WorkerSettings:
    facts: dict[str, Any] = {
        "run_id": "r",
        "inner": "local",
        "inner_args": {},
        "slots": 2,
        "environment": {**ENV, "TMPDIR": str(_made(tmp_path / "tmp"))},
        "extra": {},
        "cache_dir": tmp_path / "cache",
        "project_root": tmp_path,
        "versions": loaded_versions(PluginHost()),
        "items": 1,
    }
    return WorkerSettings(**{**facts, **fields})


def _made(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


class Place:
    """A worker that is ready, and the project of the driver."""

    def __init__(self, worker: Worker, tmp_path: Path) -> None:
        self.worker = worker
        self.project = ProjectBuilder(tmp_path / "project")
        self.run_dir = tmp_path / "run"
        self.plan = host_plan(local_plugins(PluginHost()), None)

    def item(self, config: dict[str, Any], *graders: GraderEntry, **fields: Any) -> TrialItem:
        self.project.file("fixtures/s.json", json.dumps(config))
        given = stimulus("Do it.", name="s", graders=graders, **fields)
        item = trial_item(self.project.root, given)
        return replace(item, executor=ExecutorChoice(name="mock", config={"fixtureDir": "fixtures"}))

    async def run(self, item: TrialItem, judge: JudgeFacts | None = None, attempt: str = "a") -> RemoteOutcome:
        target = _made(self.project.root.parent / "bundles")
        bundle = make_bundle(BundleFiles(visible={self.project.root}), target, limit=2**24)

        async def piece() -> bytes:
            return bundle.archive.read_bytes()

        await self.worker.open_bundle(bundle.key, [piece()])
        order = TrialOrder(
            item=item,
            output_dir=self.run_dir / "e" / "s" / "0",
            run_dir=self.run_dir,
            session_log=None,
            skip_grade=False,
            shutdown_timeout_s=5,
            wants_events=True,
            judge=judge,
        )
        reply, messages = await self.worker.run(attempt, self.plan.key, bundle.key, packed(order))
        self.reply, self.messages = reply, unpacked(messages)
        shipped: RemoteOutcome = unpacked(reply.body or await self.worker.read(attempt, "", "outcome", 0))
        return shipped


@asynccontextmanager
async def working(tmp_path: Path, **fields: Any) -> AsyncIterator[Place]:
    worker = Worker(packed(settings(tmp_path, **fields)))
    place = Place(worker, tmp_path)
    told = unpacked(await worker.start(packed(place.plan), []))
    assert told == {"pid": os.getpid(), "node": os.uname().nodename}
    try:
        yield place
    finally:
        assert await worker.close() == ()
    assert list((tmp_path / "tmp").iterdir()) == []


@in_loop
async def test_a_trial_with_paths_of_the_driver(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        wanted = GraderEntry(type="file-exists", config={"path": "x.txt"})
        fixture = {"output": "done", "files": {"x.txt": "x\n"}}
        shipped = await place.run(place.item(fixture, wanted, artifacts=Artifacts(include=("x.txt",))))
        assert (shipped.status, shipped.backend_name) == ("success", "ray/local")
        assert shipped.grade is not None
        assert shipped.grade.passed
        assert shipped.trajectory is not None
        assert shipped.trajectory.artifact_dir == str(place.run_dir / "e/s/0/artifacts")
        assert [facts.name for facts in place.reply.files] == ["e/s/0/artifacts/x.txt"]
        assert await place.worker.read("a", "run", "e/s/0/artifacts/x.txt", 0) == b"x\n"
        phases = [value[0] for kind, _, value in place.messages if kind == "phase"]
        assert phases == ["preparing", "running", "capturing", "grading"]
        assert any(kind == "event" for kind, _, _ in place.messages)
        assert await place.worker.clean_up("a") == ()
        assert shipped.work_dir is not None
        assert not shipped.work_dir.exists()


@in_loop
async def test_errors_speak_of_the_driver_s_paths(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        item = place.item({"output": "done"})
        config = {"fixtureDir": "nowhere", "strict": True}
        shipped = await place.run(replace(item, executor=ExecutorChoice(name="mock", config=config)))
        assert shipped.status == "error"
        assert shipped.error is not None
        assert str(tmp_path / "cache") not in shipped.error.message


@in_loop
async def test_large_results_wait_in_a_file_until_they_are_forgotten(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        shipped = await place.run(place.item({"output": "x" * 2**21}))
        assert place.reply.body is None
        assert shipped.trajectory is not None
        assert len(shipped.trajectory.output) == 2**21
        await place.worker.forget(["a", "unknown"])
        with pytest.raises(FileNotFoundError):
            await place.worker.read("a", "", "outcome", 0)


@in_loop
async def test_files_of_a_workspace_can_be_fetched_until_it_is_cleaned_up(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        await place.run(place.item({"files": {"x.txt": "x\n", "deep/y.txt": "y\n"}}))
        selection = packed(Selection(include=("**/*.txt",), exclude=("x.txt",)))
        exported, files = unpacked(await place.worker.export("a", selection))
        assert exported.files == ("deep/y.txt",)
        assert [facts.name for facts in files] == ["deep/y.txt"]
        await place.worker.clean_up("a")
        refused = unpacked(await place.worker.export("a", selection))
        assert isinstance(refused, Failure)
        assert refused.message == "workspace is not available"


@pytest.mark.parametrize("early", [False, True])
@in_loop
async def test_stopping(early: bool, tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        item = place.item({"delayMs": 60_000, "output": "late"})
        if early:
            await place.worker.stop("a", "cancelled")
        running = asyncio.create_task(place.run(item))
        if not early:
            while not any(value[0] == "running" for _, _, value in unpacked(await place.worker.poll())):
                continue
            await place.worker.stop("a", "cancelled")
        shipped = await running
        assert shipped.status in ("success", "skipped")
        assert shipped.grade is None


@in_loop
async def test_giving_up_ends_a_trial_at_once(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        running = asyncio.create_task(place.run(place.item({"delayMs": 60_000})))
        await place.worker.poll()
        await place.worker.cancel("a")
        assert (await running).skip_reason == "cancelled"


@in_loop
async def test_an_executor_that_is_not_there_is_an_error_of_its_trial(tmp_path: Path) -> None:
    async with working(tmp_path) as place:
        item = replace(place.item({}), executor=ExecutorChoice(name="nobody"))
        shipped = await place.run(item)
        assert shipped.error is not None
        assert "no executor named 'nobody'" in shipped.error.message


@in_loop
async def test_judges_are_asked_through_the_driver(tmp_path: Path) -> None:
    facts = JudgeFacts(supports_files=False, metadata={"demo": True}, model="judge-1", effort=None)
    grade = {
        "rubric_scores": [{"criterion": "It is done.", "score": 4, "reasoning": "r"}],
        "overall_score": 4,
        "overall_reasoning": "well done",
    }
    async with working(tmp_path) as place:
        item = place.item({"output": "done"}, GraderEntry(type="prompt"), rubric=("It is done.",))
        running = asyncio.create_task(place.run(item, facts))
        question: Any = None
        while question is None:
            found = [value for kind, _, value in unpacked(await place.worker.poll()) if kind == "judge"]
            question = found[0] if found else None
        assert question.request["model"] == "judge-1"
        assert await place.worker.check("a", question.call, grade) is None
        wrong = {**grade, "overall_score": 9}
        assert await place.worker.check("a", question.call, wrong) is not None
        await place.worker.answer("a", question.call, packed(JudgeReply(args=grade, model="judge-1")), None)
        shipped = await running
        assert shipped.grade is not None
        (detail,) = shipped.grade.details or ()
        assert (detail.score, detail.evidence) == (0.75, "well done")
        assert (detail.metadata or {})["demo"] is True


@in_loop
async def test_a_judge_that_failed_is_an_error_of_the_grader(tmp_path: Path) -> None:
    facts = JudgeFacts(supports_files=False, metadata={}, model="judge-1", effort=None)
    async with working(tmp_path) as place:
        item = place.item({"output": "done"}, GraderEntry(type="prompt"), rubric=("It is done.",))
        running = asyncio.create_task(place.run(item, facts))
        call = ""
        while not call:
            call = next((value.call for kind, _, value in unpacked(await place.worker.poll()) if kind == "judge"), "")
        failure = {"message": "no key", "kind": "unavailable", "usage": None, "cost": None}
        await place.worker.answer("a", call, packed(None), failure)
        shipped = await running
        assert shipped.grade is not None
        (detail,) = shipped.grade.details or ()
        assert detail.status == "error"
        assert "no key" in detail.evidence


@in_loop
async def test_another_version_is_told_and_nothing_started(tmp_path: Path) -> None:
    worker = Worker(packed(settings(tmp_path, versions={"vally-kernel": "0.0.1"})))
    told = unpacked(await worker.start(packed(host_plan(local_plugins(PluginHost()), None)), []))
    assert isinstance(told, Failure)
    assert told.code == "version-mismatch"
    assert "0.0.1" in told.message
    assert os.uname().nodename in told.message
    assert await worker.close() == ()


@in_loop
async def test_what_only_the_worker_knows_as_secret_stays_there(tmp_path: Path) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("WORKER_TOKEN", "the-secret-of-the-worker")
    patch.setenv("TMPDIR", str(_made(tmp_path / "tmp")))
    try:
        async with working(tmp_path, environment=None) as place:
            fixture = {"output": "I saw the-secret-of-the-worker", "files": {"x.txt": "the-secret-of-the-worker\n"}}
            wanted = GraderEntry(type="diff-contains", config={"value": "the-secret-of-the-worker"})
            shipped = await place.run(place.item(fixture, wanted))
            assert shipped.trajectory is not None
            assert shipped.trajectory.output == "I saw <redacted:WORKER_TOKEN>"
            assert shipped.grade is not None
            assert shipped.grade.passed
            patched = await place.worker.read("a", "run", "e/s/0/workspace.patch", 0)
            assert b"+<redacted:WORKER_TOKEN>" in patched
    finally:
        patch.undo()
