"""The backend under contract, and short ways to run trials with it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally.testing.contracts import agent
from vally.testing.contracts.probes import PROBES
from vally.testing.hosts import plugin_host
from vally.testing.trials import process_environment, run_context, trial_item, trial_options

if TYPE_CHECKING:
    from vally.model.evalspec import GraderEntry, Stimulus
    from vally.model.results import GraderResult
    from vally.records import BackendSpec
    from vally.run.trial import TrialOptions, TrialOutcome


class BackendSubject:
    """The backend under contract."""

    def __init__(
        self,
        factory: BackendSpec | Callable[[], Any],
        args: Mapping[str, str | list[str]],
        env: Mapping[str, str],
    ) -> None:
        self._factory = factory
        self._args = args
        self._env = env

    def create(self) -> Any:
        """A new backend object."""
        from vally.records import BackendSpec

        if isinstance(self._factory, BackendSpec):
            return plugin_host(self._factory).create(self._factory)
        return self._factory()

    @asynccontextmanager
    async def prepared(self, directory: Path) -> AsyncIterator[Any]:
        """A backend that is ready, shut down afterwards."""
        backend = self.create()
        await backend.prepare(self._args, run_context(directory, process_env=process_environment(self._env)))
        try:
            yield backend
        finally:
            with anyio.CancelScope(shield=True):
                await backend.shutdown()

    async def run(self, directory: Path, given: Stimulus, script: Sequence[Any], **fields: Any) -> TrialOutcome:
        """Run one trial, clean up, and return what became of it."""
        async with self.prepared(directory) as backend:
            outcome = await run_trial(backend, directory, given, script, **fields)
            warnings = await outcome.cleanup()
            assert not warnings, f"cleaning up gave warnings: {list(warnings)}"
            return outcome


async def run_trial(
    backend: Any, directory: Path, given: Stimulus, script: Sequence[Any], **fields: Any
) -> TrialOutcome:
    """Run one trial and leave the clean-up to the caller; `fields` are those of the item and of `options_for`."""
    names = ("skills", "trial_index")
    about = {name: fields.pop(name) for name in names if name in fields}
    item = trial_item(directory, given, executor=agent.NAME, **about)
    item = replace(item, executor=replace(item.executor, config=agent.config_of(script)))
    outcome: TrialOutcome = await backend.run_trial(item, options_for(script, **fields))
    return outcome


def options_for(script: Sequence[Any] = (), **fields: Any) -> TrialOptions:
    """What a backend gets beside an item whose agent follows the script."""
    plugins = [*PROBES, agent.RECORD]
    config = plugin_host(*plugins).parse_config(agent.RECORD, agent.config_of(script))
    executor = plugin_host(*plugins).create(agent.RECORD)
    return trial_options(executor, plugins, executor_config=config, executor_record=agent.RECORD, **fields)


def entry(keyword: str, turn: int | None = None, **config: object) -> GraderEntry:
    """An entry of one of the probes."""
    from vally.model.evalspec import GraderEntry

    return GraderEntry(type=keyword, config=config, turn=turn)


def details(outcome: TrialOutcome) -> list[GraderResult]:
    """What the probes found in a trial that succeeded."""
    assert outcome.status == "success", f"status {outcome.status}: {outcome.error}"
    assert outcome.grade is not None
    return list(outcome.grade.details or ())


def python_command(code: str) -> str:
    """A set-up command that runs a line of Python."""
    # Set-up commands go through a shell, whose quoting differs between systems; this code has no quotes.
    return f'"{sys.executable}" -c "{code}"'
