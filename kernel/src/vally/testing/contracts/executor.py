"""The contract of executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from vally.errors import ExecutorError
from vally.testing.contracts.case import Case
from vally.testing.contracts.finished import check_trajectory
from vally.testing.hosts import plugin_host
from vally.testing.sentinels import process_sentinel, tree_digest
from vally.testing.trials import executor_options, stimulus

if TYPE_CHECKING:
    from vally.model.trajectory import Trajectory
    from vally.records import Capabilities, ExecutorSpec
    from vally.run.inputs import ExecutorOptions, TurnComplete

Config = Mapping[str, object]
Behaviour = Config | Callable[[Path], Config]
STOP_LIMIT_S = 10.0
SECRET = "contract-secret-4f1d9c"
SECRET_VARIABLE = "CONTRACT_API_KEY"
FAILURES = {
    "http-401": ("provider-auth", False),
    "http-429": ("provider-rate-limit", True),
    "http-500": ("provider-error", True),
}
BEHAVIOURS = frozenset({"answer", "writes", "until-stopped", "background", "secret", *FAILURES})


def executor_contract(
    factory: ExecutorSpec | Callable[[], Any], config: Config, *, agent: Mapping[str, Behaviour] | None = None
) -> list[Case]:
    """Cases every executor passes.

    `factory` is its record, or makes the object. `config` is a config with which its agent gives an ordinary answer.
    `agent` says how to make the agent behave: behaviour -> keys laid over `config`, or a function of the trial's
    parent directory (its workspace is `work` in it) that returns them. Behaviours: `answer`, `writes` (a file with a
    tool), `until-stopped` (works until it is stopped), `background` (leaves a process behind), `secret` (uses the
    variable CONTRACT_API_KEY as its key), `http-401`, `http-429`, `http-500` (the provider answers so).
    """
    told = dict(agent or {})
    if unknown := set(told) - BEHAVIOURS:
        raise ValueError(f"unknown behaviours {sorted(unknown)}, expected some of {sorted(BEHAVIOURS)}")
    subject = _Subject(_record(factory), config, told)
    cases = [
        Case("record", _record_case, subject),
        Case("trajectory", _trajectory, subject),
        Case("outside-untouched", _outside_untouched, subject),
        Case("shutdown-twice", _shutdown_twice, subject),
        Case("shutdown-during-run", _shutdown_during_run, subject),
        Case("key-not-shown", _key_not_shown, subject),
    ]
    if subject.record.capabilities.multi_turn:
        cases.append(Case("three-turns", _three_turns, subject))
    if "writes" in told:
        cases.append(Case("tool-events", _tool_events, subject))
    if "background" in told:
        cases.append(Case("no-process-left", _no_process_left, subject))
    if "until-stopped" in told:
        cases += [Case(f"stop-{reason}", _stop, subject, reason) for reason in ("cancelled", "timeout")]
    cases += [Case(name, _failure, subject, name) for name in FAILURES if name in told]
    return cases


def _record(factory: ExecutorSpec | Callable[[], Any]) -> ExecutorSpec:
    from vally.records import ExecutorSpec

    if isinstance(factory, ExecutorSpec):
        return factory
    return ExecutorSpec(name="under-contract", summary="an executor under contract", factory=factory)


class _Subject:
    """The executor under contract and how its agent is told what to do."""

    def __init__(self, record: ExecutorSpec, config: Config, agent: Mapping[str, Behaviour]) -> None:
        self.record = record
        self._config = config
        self._agent = agent
        self._host = plugin_host(record)

    def create(self) -> Any:
        """A new executor object."""
        return self._host.create(self.record)

    def knows(self, behaviour: str) -> bool:
        """Whether the agent can be told to behave so."""
        return behaviour in self._agent

    def values(self, behaviour: str, directory: Path) -> dict[str, object]:
        """The config mapping that makes the agent behave so."""
        told = self._agent.get(behaviour, {})
        return {**self._config, **(told(directory) if callable(told) else told)}

    def config(self, behaviour: str, directory: Path) -> Any:
        """The same, validated."""
        values = self.values(behaviour, directory)
        return values if self.record.config is None else self._host.parse_config(self.record, values)

    def options(self, directory: Path, behaviour: str = "answer", **fields: Any) -> ExecutorOptions:
        directory.mkdir(parents=True, exist_ok=True)
        facts = {"executor_config": self.config(behaviour, directory), **fields}
        return executor_options(directory, **facts)

    async def run(self, options: ExecutorOptions, *turns: str) -> Trajectory:
        """One execution with everything the kernel does before and after it."""
        executor = self.create()
        given = stimulus(*turns)
        try:
            await _optional(executor, "prepare", given, options)
            trajectory: Trajectory = await executor.execute(given, options)
            await _optional(executor, "cleanup", options.trial_id, preserve_workspace=False)
        finally:
            with anyio.CancelScope(shield=True):
                await executor.shutdown()
                await options.runner.kill_all()
        return trajectory


async def _optional(executor: Any, name: str, *args: Any, **kwargs: Any) -> None:
    method = getattr(executor, name, None)
    if method is not None:
        await method(*args, **kwargs)


def _record_case(subject: _Subject, directory: Path) -> None:
    executor = subject.create()
    config = subject.config("answer", directory)
    check = getattr(executor, "validate_config", None)
    if check is not None:
        check(subject.values("answer", directory))
    narrow = getattr(executor, "capabilities_for", None)
    if narrow is not None:
        _within(narrow(config), subject.record.capabilities)


def _within(narrowed: Capabilities, most: Capabilities) -> None:
    for name in type(most).__dataclass_fields__:
        assert getattr(most, name) or not getattr(narrowed, name), f"capabilities_for adds '{name}' to the record's"


async def _trajectory(subject: _Subject, directory: Path) -> None:
    options = subject.options(directory)
    trajectory = await subject.run(options, "Say something.")
    check_trajectory(trajectory, options, prompts=1)
    assert trajectory.end_reason == "completed"
    assert trajectory.output.strip(), "the agent was to give an answer"


async def _three_turns(subject: _Subject, directory: Path) -> None:
    seen: list[tuple[int, bool]] = []

    async def on_turn_complete(done: TurnComplete) -> None:
        seen.append((done.turn, done.final))

    options = subject.options(directory, on_turn_complete=on_turn_complete)
    trajectory = await subject.run(options, "First.", "Second.", "Third.")
    check_trajectory(trajectory, options, prompts=3)
    prompts = [item.data.get("content") for item in trajectory.events if item.type == "user_message"]
    assert prompts == ["First.", "Second.", "Third."]
    if subject.record.capabilities.turn_completion:
        assert seen == [(0, False), (1, False), (2, True)], f"on_turn_complete was called with {seen}"


async def _tool_events(subject: _Subject, directory: Path) -> None:
    options = subject.options(directory, "writes")
    trajectory = await subject.run(options, "Write a file.")
    check_trajectory(trajectory, options, prompts=1)
    results = [item for item in trajectory.events if item.type == "tool_result"]
    assert results, "the agent was to call a tool"
    assert any(path.is_file() for path in options.work_dir.rglob("*")), "the agent was to write a file"


async def _outside_untouched(subject: _Subject, directory: Path) -> None:
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file.txt").write_text("untouched")
    options = subject.options(directory / "place")
    (options.spec_dir / "eval.yaml").write_text("name: untouched\n")
    before = tree_digest(elsewhere), tree_digest(options.spec_dir), _names(directory / "place")
    await subject.run(options, "Say something.")
    after = tree_digest(elsewhere), tree_digest(options.spec_dir), _names(directory / "place")
    assert before == after, "something outside workspace and trial directory was changed"


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def _shutdown_twice(subject: _Subject, directory: Path) -> None:
    executor = subject.create()
    await executor.shutdown()
    await executor.shutdown()
    options = subject.options(directory)
    with process_sentinel(options.trial_id):
        used = subject.create()
        await used.execute(stimulus("Say something."), options)
        await used.shutdown()
        await used.shutdown()
        await options.runner.kill_all()


async def _shutdown_during_run(subject: _Subject, directory: Path) -> None:
    behaviour = "until-stopped" if subject.knows("until-stopped") else "answer"
    options = subject.options(directory, behaviour)
    executor = subject.create()

    async def execute() -> None:
        # Whether the execution still succeeds is open; that it ends is not.
        try:
            await executor.execute(stimulus("Say something."), options)
        except ExecutorError:
            return

    with process_sentinel(options.trial_id), anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(execute)
            await anyio.sleep(0.2)
            await executor.shutdown()
            options.stop.set("cancelled")
        await options.runner.kill_all()


async def _stop(subject: _Subject, reason: str, directory: Path) -> None:
    options = subject.options(directory, "until-stopped")
    found: list[Trajectory] = []
    ended: list[float] = []

    async def execute() -> None:
        found.append(await subject.run(options, "Work for a long time."))
        ended.append(time.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(execute)
        await anyio.sleep(0.5)
        assert not found, "the agent was to work until it is stopped"
        stopped = time.monotonic()
        options.stop.set(reason)
        with anyio.move_on_after(STOP_LIMIT_S + 5):
            while not ended:
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    assert ended, "execute did not return after the stop"
    assert ended[0] - stopped < STOP_LIMIT_S, f"execute returned only {ended[0] - stopped:.1f} s after the stop"
    expected = "cancelled" if reason == "cancelled" else "agent_timeout"
    assert found[0].end_reason == expected, f"endReason is {found[0].end_reason}, not {expected}"


async def _no_process_left(subject: _Subject, directory: Path) -> None:
    options = subject.options(directory, "background")
    with process_sentinel(options.trial_id):
        await subject.run(options, "Leave something behind.")


async def _key_not_shown(subject: _Subject, directory: Path) -> None:
    records: list[logging.LogRecord] = []
    log = logging.Logger("contract")
    log.addHandler(_Collector(records))
    behaviour = "secret" if subject.knows("secret") else "answer"
    options = subject.options(directory, behaviour, log=log, process_env={SECRET_VARIABLE: SECRET})
    trajectory = await subject.run(options, "Say something.")
    assert SECRET not in trajectory.model_dump_json(), "the key is in the trajectory"
    assert not any(SECRET in record.getMessage() for record in records), "the key is in the log"


class _Collector(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


async def _failure(subject: _Subject, behaviour: str, directory: Path) -> None:
    code, retryable = FAILURES[behaviour]
    options = subject.options(directory, behaviour)
    raised: ExecutorError | None = None
    try:
        await subject.run(options, "Say something.")
    except ExecutorError as error:
        raised = error
    assert raised is not None, f"{behaviour} must raise ExecutorError"
    assert raised.code == code, f"code is {raised.code}, not {code}"
    assert raised.retryable is retryable, f"retryable is {raised.retryable}, not {retryable}"
