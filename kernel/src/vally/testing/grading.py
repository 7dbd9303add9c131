"""Grading with one grader through the machinery of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Scoring, Stimulus
    from vally.model.results import GraderResult
    from vally.model.trajectory import Trajectory
    from vally.records import GraderSpec
    from vally.run.grading import GradingRequest

_REQUEST = ("judge", "env", "run_dir", "diff_file", "seed", "spec_dir")


def grade(
    record: GraderSpec | str, config: Mapping[str, object] | None, trajectory: Trajectory, **facts: Any
) -> GraderResult:
    """The result of one grader for a trajectory, named, checked and cut as in a run.

    `record` is a keyword only together with the fact `host`. Further facts: `turn`, `scope`, `name`, `required`,
    `weight` of the entry; `stimulus` (default: that of the trajectory), `scoring`; `judge`, `env`, `run_dir`,
    `diff_file`, `seed`, `spec_dir` of the run. Processes that the grader starts are ended.
    """
    import anyio

    from vally.run.grading import grade_entries

    request = _request(record, config, trajectory, **facts)

    async def run() -> GraderResult:
        try:
            aggregate = await grade_entries(request)
        finally:
            with anyio.CancelScope(shield=True):
                await request.runner.kill_all()
        assert aggregate is not None
        assert aggregate.details is not None
        return aggregate.details[0]

    return anyio.run(run)


def _request(
    record: GraderSpec | str,
    config: Mapping[str, object] | None,
    trajectory: Trajectory,
    *,
    host: PluginHost | None = None,
    stimulus: Stimulus | None = None,
    scoring: Scoring | None = None,
    **facts: Any,
) -> GradingRequest:
    from vally.model.evalspec import GraderEntry
    from vally.run.library import library_request
    from vally.testing.hosts import plugin_host

    keyword = record if isinstance(record, str) else record.name
    run_facts = {name: facts.pop(name) for name in _REQUEST if name in facts}
    entry = GraderEntry(type=keyword, config=config or {}, **facts)
    request = library_request(
        trajectory,
        [{"type": keyword}],
        stimulus=stimulus,
        scoring=scoring,
        host=host or plugin_host(record),
        spec_dir=Path(run_facts.pop("spec_dir", ".")).absolute(),
    )
    return replace(request, stimulus=replace(request.stimulus, graders=(entry,)), **run_facts)
