"""Contracts: sound plugins pass every case, and each fault is found by the case that is there for it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    CallTokens,
    Capabilities,
    Config,
    ExecutorError,
    ExecutorOptions,
    ExecutorSpec,
    ExporterSpec,
    ExportRequest,
    ExportResult,
    GraderInput,
    GraderResult,
    GraderSpec,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    PluginError,
    ProviderConfig,
    Stimulus,
    Trajectory,
    grader,
)
from vally.testing import ScriptedExecutor, Wait, contracts
from vally.testing.contracts import Answer, Case, Hang, ModelReply, Status, Text


def failing(cases: Sequence[Case], directory: Path) -> list[str]:
    """Names of the cases that do not pass."""
    failed = []
    for index, case in enumerate(cases):
        place = directory / str(index)
        place.mkdir()
        try:
            case(place)
        except (AssertionError, PluginError):
            failed.append(case.__name__)
    return failed


class WordConfig(Config):
    word: str = "app"


@grader("sound", config=WordConfig)
def sound(input: GraderInput[WordConfig]) -> GraderResult:
    """Looks for a word."""
    found = input.config.word in input.trajectory.output
    return GraderResult.verdict(found, f"{input.config.word} {'found' if found else 'missing'}")


SOUND = contracts.grader_contract(sound, valid=[{}, {"word": "x"}], invalid=[{"word": 3}])


@pytest.mark.parametrize("case", SOUND)
def test_a_sound_grader(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


def test_cases_have_names_for_pytest() -> None:
    assert [case.__name__ for case in SOUND][:5] == ["record", "unknown-key", "valid-1", "valid-2", "invalid-1"]


def test_a_contract_needs_a_config() -> None:
    with pytest.raises(ValueError, match="at least one valid config"):
        contracts.grader_contract(sound, valid=[])


class Chance:
    def grade(self, input: GraderInput[Any]) -> GraderResult:
        return GraderResult.verdict(True, f"{random.random()}")


class Raises:
    def grade(self, input: GraderInput[Any]) -> GraderResult:
        return GraderResult.verdict(True, str(input.trajectory.events[0].data["content"]))


class Meddles:
    def grade(self, input: GraderInput[Any]) -> GraderResult:
        input.full_trajectory.metadata["seen"] = input.full_trajectory.metadata.get("seen", 0) + 1
        return GraderResult.verdict(True, "seen")


class Whimsical:
    def grade(self, input: GraderInput[Any]) -> GraderResult:
        return GraderResult.verdict(True, "fine")

    def default_name(self, config: Any) -> str:
        return f"name-{random.random()}"


class Nothing:
    pass


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (Chance, ["repeatable-1"]),
        (Raises, ["no-exception-1"]),
        (Meddles, ["untouched-1"]),
        (Whimsical, ["pure-1", "repeatable-1"]),
        (Nothing, ["record", "pure-1", "untouched-1"]),
    ],
    ids=["chance", "raises", "meddles", "whimsical", "nothing"],
)
def test_faulty_graders(factory: Callable[[], object], expected: list[str], tmp_path: Path) -> None:
    record = GraderSpec(name="faulty", summary="faulty", factory=factory)
    assert failing(contracts.grader_contract(record, valid=[{}]), tmp_path) == expected


def test_configs_that_should_be_refused(tmp_path: Path) -> None:
    cases = contracts.grader_contract(sound, valid=[{}], invalid=[{"word": "accepted"}])
    assert failing(cases, tmp_path) == ["invalid-1"]


BEHAVIOURS: dict[str, dict[str, object]] = {
    "until-stopped": {"does": "waits"},
    "writes": {"does": "writes"},
    "http-401": {"does": "provider-auth"},
    "http-429": {"does": "provider-rate-limit"},
    "http-500": {"does": "provider-error"},
}


class BehaviourConfig(Config):
    does: str = "answers"


class Behaving(ScriptedExecutor):
    """Does what its config says."""

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        does = options.executor_config.does  # type: ignore[attr-defined]
        retryable = does in ("provider-rate-limit", "provider-error")
        scripts: dict[str, Any] = {"waits": [Wait(600)], "writes": [{"made.txt": "made"}, "done"]}
        scripts["answers"] = [["one"], ["two"], ["three"]]
        failure = ExecutorError("refused", code=does, retryable=retryable)
        return await ScriptedExecutor(scripts.get(does, [failure])).execute(stimulus, options)


def behaving(factory: Callable[[], Any] = Behaving, **capabilities: bool) -> ExecutorSpec:
    can = Capabilities(**{"multi_turn": True, "turn_completion": True, **capabilities})
    return ExecutorSpec(name="behaving", summary="behaves", factory=factory, config=BehaviourConfig, capabilities=can)


@pytest.mark.parametrize("case", contracts.executor_contract(behaving(), {}, agent=BEHAVIOURS))
def test_a_sound_executor(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


class ForgetsMetadata(Behaving):
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        return (await super().execute(stimulus, options)).model_copy(update={"metadata": {}})


class WritesElsewhere(Behaving):
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        (options.spec_dir / "notes.txt").write_text("notes")
        return await super().execute(stimulus, options)


class TellsTheKey(Behaving):
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        options.log.warning("key %s", options.process_env.get("CONTRACT_API_KEY"))
        return await super().execute(stimulus, options)


class CallsBackOutOfOrder(Behaving):
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        from dataclasses import replace

        async def ignore(_: object) -> None:
            return None

        return await super().execute(stimulus, replace(options, on_turn_complete=ignore))


class ShutsDownOnce(Behaving):
    async def shutdown(self) -> None:
        assert not self.shutdowns
        await super().shutdown()


class RetriesNothing(Behaving):
    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        try:
            return await super().execute(stimulus, options)
        except ExecutorError as error:
            raise ExecutorError(error.message, code=error.code or "") from error


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (ForgetsMetadata, ["trajectory", "three-turns", "tool-events"]),
        (WritesElsewhere, ["outside-untouched"]),
        (TellsTheKey, ["key-not-shown"]),
        (CallsBackOutOfOrder, ["three-turns"]),
        (ShutsDownOnce, ["shutdown-twice"]),
        (RetriesNothing, ["http-429", "http-500"]),
    ],
    ids=["metadata", "elsewhere", "key", "callbacks", "shutdown", "retryable"],
)
def test_faulty_executors(factory: Callable[[], Any], expected: list[str], tmp_path: Path) -> None:
    quick = {name: keys for name, keys in BEHAVIOURS.items() if name != "until-stopped"}
    assert failing(contracts.executor_contract(behaving(factory), {}, agent=quick), tmp_path) == expected


def test_an_unknown_behaviour() -> None:
    with pytest.raises(ValueError, match="unknown behaviours"):
        contracts.executor_contract(behaving(), {}, agent={"sings": {}})


Script = list[ModelReply]


class Endpoint:
    """Stands for a model server: gives the replies of the case that runs."""

    def __init__(self) -> None:
        self.replies: Script = []

    @contextmanager
    def serve(self, replies: Sequence[ModelReply]) -> Iterator[ProviderConfig]:
        self.replies = list(replies)
        yield ProviderConfig(type="fake", api_key_env="CONTRACT_API_KEY")

    async def call(self) -> ModelReply:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Hang):
            await anyio.sleep(600)
        return reply


class EndpointJudge:
    """A judge that keeps the rules, in front of an `Endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def configure(self, provider: ProviderConfig | None) -> None:
        assert provider is not None
        self._key = provider.api_key

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        try:
            with anyio.fail_after(request.timeout_s):
                return await self._conversation(request)
        except TimeoutError:
            raise JudgeError("no answer in time", kind="timeout") from None

    async def _conversation(self, request: JudgeRequest) -> JudgeReply:
        for reminders in range(request.max_reminders + 1):
            reply = await self._answered()
            calls = reminders + 1
            if isinstance(reply, Answer) and _fits(reply.args) and request.check(reply.args) is None:
                usage = CallTokens(input_tokens=10 * calls, output_tokens=calls)
                return JudgeReply(args=reply.args, reminders_used=reminders, usage=usage)
        raise JudgeError("no valid answer", kind="malformed", usage={"input_tokens": 30, "output_tokens": 3})

    async def _answered(self) -> ModelReply:
        while True:
            reply = await self._endpoint.call()
            if not isinstance(reply, Status):
                return reply
            if reply.code not in (429, 500):
                raise JudgeError(self.problem(reply.code), kind="transport")
            await anyio.sleep(0.1)

    def problem(self, code: int) -> str:
        return f"HTTP {code}"

    async def shutdown(self) -> None:
        return None


def _fits(args: Mapping[str, object]) -> bool:
    score = args.get("score")
    return isinstance(score, int) and 0 <= score <= 5


ENDPOINT = Endpoint()


@pytest.mark.parametrize("case", contracts.judge_contract(lambda: EndpointJudge(ENDPOINT), ENDPOINT.serve))
def test_a_sound_judge(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


class TellsTheKeyInErrors(EndpointJudge):
    def problem(self, code: int) -> str:
        return f"HTTP {code} with key {self._key}"


class TakesAnyAnswer(EndpointJudge):
    async def _conversation(self, request: JudgeRequest) -> JudgeReply:
        reply = await self._answered()
        args = reply.args if isinstance(reply, Answer) else {"score": 3, "reason": "made up"}
        return JudgeReply(args=args, usage=CallTokens(input_tokens=1, output_tokens=1))


@pytest.mark.parametrize(
    ("judge", "expected"),
    [(TellsTheKeyInErrors, ["key-not-in-errors"]), (TakesAnyAnswer, ["reminded", "malformed"])],
    ids=["tells-the-key", "takes-any-answer"],
)
def test_faulty_judges(judge: Callable[[Endpoint], Any], expected: list[str], tmp_path: Path) -> None:
    endpoint = Endpoint()
    cases = contracts.judge_contract(lambda: judge(endpoint), endpoint.serve)
    quick = [case for case in cases if case.__name__ not in ("timed-out", "unreachable")]
    assert failing(quick, tmp_path) == expected


class QuietReporter:
    """Writes a report when the run is over."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    async def on_trial_result(self, event: Any) -> None:
        self._lines.append(f"{event.item.item_id}: {event.result.status}")

    def on_run_complete(self, event: Any) -> Mapping[str, Path]:
        path = event.run_dir / "report.txt"
        path.write_text("\n".join(self._lines))
        return {"report": path}


@pytest.mark.parametrize("case", contracts.reporter_contract(QuietReporter))
def test_a_sound_reporter(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


class PrintsEvidence:
    def on_trial_result(self, event: Any) -> None:
        for detail in event.result.grade_result.details if event.result.grade_result else ():
            print(detail.evidence)


class ChangesResults:
    def on_trial_result(self, event: Any) -> None:
        event.result.duration_ms = 0


class NamesNoFile:
    def on_run_complete(self, event: Any) -> Mapping[str, Path]:
        return {"report": event.run_dir / "never-written.html"}


ALL_RUNS = ["order", "error", "cancelled", "no-results", "ungraded", "large-evidence", "control-characters"]


@pytest.mark.parametrize(
    ("reporter", "expected"),
    [
        (PrintsEvidence, ["control-characters"]),
        (ChangesResults, [name for name in ALL_RUNS if name != "no-results"]),
        (NamesNoFile, ALL_RUNS),
    ],
    ids=["prints-evidence", "changes-results", "names-no-file"],
)
def test_faulty_reporters(reporter: Callable[[], Any], expected: list[str], tmp_path: Path) -> None:
    assert failing(contracts.reporter_contract(reporter), tmp_path) == expected


Write = Callable[[ExportRequest], Awaitable[ExportResult]]


def exporter(write: Write) -> ExporterSpec:
    class Exporter:
        async def export(self, request: ExportRequest) -> ExportResult:
            return await write(request)

    return ExporterSpec(name="names", summary="writes the names of stimuli", factory=Exporter)


async def _names(request: ExportRequest) -> ExportResult:
    names = [stimulus.name for spec in request.specs for stimulus in spec.stimuli]
    path = request.output_dir / "names.txt"
    path.write_text("\n".join(names))
    return ExportResult(files=(path,), stimuli=len(names))


async def _forgetful(request: ExportRequest) -> ExportResult:
    await _names(request)
    return ExportResult(files=(), stimuli=2)


async def _random(request: ExportRequest) -> ExportResult:
    result = await _names(request)
    (request.output_dir / "names.txt").write_text(f"{random.random()}")
    return result


@pytest.mark.parametrize(
    ("write", "expected"),
    [(_names, []), (_forgetful, ["files"]), (_random, ["repeatable"])],
    ids=["sound", "forgetful", "random"],
)
def test_exporters(write: Write, expected: list[str], tmp_path: Path) -> None:
    assert failing(contracts.exporter_contract(exporter(write)), tmp_path) == expected


def test_replies_of_the_model_are_values() -> None:
    assert (Text(), Status(429), Hang()) == (Text("I would say four."), Status(429), Hang())
