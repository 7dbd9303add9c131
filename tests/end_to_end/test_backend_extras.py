"""What backends may have beyond the protocol: plan and host, word of what is recorded, attempts of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import BackendSpec, GradeOutcome, GradeRequest, RunContext, TrialItem, TrialOptions
from vally.testing import CliResult, run_cli
from vally_backend_local import LocalBackend


class Telling:
    """Runs trials on this machine; says of each that it was begun twice in vain, and remembers what it is told."""

    def __init__(self, root: Path) -> None:
        self.inner = LocalBackend()
        self.root = root
        self.context: RunContext
        self.recorded_items: list[tuple[str, int]] = []
        self.wanted: list[bool] = []
        self.fails = False

    async def prepare(self, args: Mapping[str, str | list[str]], context: RunContext) -> None:
        self.context = context
        await self.inner.prepare({}, context)

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> Any:
        self.wanted.append(options.wants_events)
        outcome: Any = await self.inner.run_trial(item, options)
        outcome.lost_attempts = 2
        outcome.backend_name = "telling/local"
        return outcome

    async def grade_trial(self, request: GradeRequest) -> GradeOutcome:
        return await self.inner.grade_trial(request)

    async def recorded(self, item_id: str) -> None:
        if self.fails:
            raise RuntimeError("does not care")
        (results,) = (self.root / "out").glob("*/results.jsonl")
        lines = [json.loads(line) for line in results.read_bytes().splitlines()]
        self.recorded_items.append((item_id, [line["itemId"] for line in lines].count(item_id)))

    async def shutdown(self) -> None:
        await self.inner.shutdown()


@pytest.fixture
def backend(tmp_path: Path) -> Telling:
    return Telling(tmp_path)


def evaluate(backend: Telling, *more: str) -> CliResult:
    record = BackendSpec(name="telling", summary="tells", factory=lambda: backend)
    graders = [{"type": "output-contains", "config": {"substring": "hello"}}]
    stimuli = [{"name": name, "prompt": "hello", "graders": graders} for name in ("a", "b")]
    spec = {"name": "e", "defaults": {"executor": "mock", "runs": 2}, "stimuli": stimuli}
    (backend.root / "eval.yaml").write_text(json.dumps(spec))
    words = ["eval", "-e", "eval.yaml", "--backend", "telling", "--output-dir", "out", *more]
    result = run_cli(words, cwd=backend.root, plugins=[record])
    assert result.exit_code == 0, result.stderr
    return result


def test_a_backend_knows_the_whole_run_before_it_starts(backend: Telling) -> None:
    evaluate(backend)
    assert backend.context.plan is not None
    assert len(list(backend.context.plan.items())) == backend.context.items == 4
    assert backend.context.host is not None
    assert "mock" in backend.context.host.records("executor")


def test_it_is_told_of_each_item_once_its_record_is_on_disk(backend: Telling) -> None:
    run = evaluate(backend)
    items = [record["itemId"] for record in run.records[:-1]]
    assert sorted(backend.recorded_items) == sorted((item, 1) for item in items)


def test_its_own_attempts_and_its_name_are_recorded(backend: Telling) -> None:
    run = evaluate(backend)
    assert {(record["attempts"], record["backend"]) for record in run.records[:-1]} == {(3, "telling/local")}


@pytest.mark.parametrize(("words", "wanted"), [((), False), (("--verbose",), True)])
def test_it_knows_whether_anybody_listens_to_events(words: tuple[str, ...], wanted: bool, backend: Telling) -> None:
    evaluate(backend, *words)
    assert backend.wanted == [wanted] * 4


def test_one_that_fails_to_listen_is_a_warning(backend: Telling) -> None:
    backend.fails = True
    run = evaluate(backend)
    assert "backend 'telling': RuntimeError: does not care" in run.stderr
    assert len(run.records) == 5
