"""The judges of a run: choice by provider, limits, and what a trial is charged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    CallTokens,
    Cost,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    JudgeSettings,
    JudgeSpec,
    PluginError,
    ProviderConfig,
    RunContext,
    ToolSchema,
)
from vally.run import judges
from vally.run.judges import ItemJudge, JudgePool
from vally.testing import ScriptedJudge, plugin_host, run_context

TOOL = ToolSchema(name="submit", description="submit it", parameters={"type": "object"})


def request(**fields: Any) -> JudgeRequest:
    return JudgeRequest(**{"model": "m", "system_message": "s", "user_message": "u", "tool": TOOL, **fields})


class Custom:
    """A judge made of one function; everything else is sync."""

    def __init__(self, answer: Callable[[JudgeRequest], Any]) -> None:
        self.judge = answer
        self.configured: list[ProviderConfig | None] = []
        self.ended = 0

    def configure(self, provider: ProviderConfig | None) -> None:
        self.configured.append(provider)

    def shutdown(self) -> None:
        self.ended += 1

    def record(self, **fields: Any) -> JudgeSpec:
        return JudgeSpec(**{"name": "copilot", "summary": "answers", "factory": lambda: self, **fields})


def client(*records: JudgeSpec, provider: ProviderConfig | None = None) -> ItemJudge:
    return JudgePool(plugin_host(*records)).client(
        JudgeSettings(model="run-model", reasoning_effort="low", provider=provider)
    )


def ask(judge: ItemJudge, **fields: Any) -> JudgeReply:
    return anyio.run(judge.judge, request(**fields))


def failure(judge: ItemJudge, **fields: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(judge, **fields)
    return caught.value


def test_an_entry_may_have_its_own_model_and_effort() -> None:
    judge = client()
    assert (judge.model_for(None), judge.model_for("own")) == ("run-model", "own")
    assert (judge.effort_for(None), judge.effort_for("max")) == ("low", "max")


def test_the_provider_chooses_the_judge() -> None:
    default, other = ScriptedJudge({"by": "default"}), ScriptedJudge({"by": "other"}, supports_files=True)
    records = (default.record(), other.record("other", provider_types=("fake",)))
    provider = ProviderConfig(type="fake")
    assert ask(client(*records)).args == {"by": "default"}
    chosen = client(*records, provider=provider)
    assert (ask(chosen).args, other.providers, chosen.supports_files) == ({"by": "other"}, [provider], True)
    assert not client(*records).supports_files


@pytest.mark.parametrize("provider", [None, ProviderConfig(type="fake")])
def test_a_judge_that_is_not_there(provider: ProviderConfig | None) -> None:
    judge = client(provider=provider)
    assert (failure(judge).kind, judge.supports_files) == ("unavailable", False)


def test_a_judge_that_cannot_be_configured() -> None:
    custom = Custom(lambda _: JudgeReply(args={}))
    custom.configure = lambda _: 1 / 0  # type: ignore[method-assign,assignment]  # stands for any failure
    error = failure(client(custom.record()))
    assert (error.kind, error.message) == ("unavailable", "division by zero")


def test_a_judge_gets_its_credentials() -> None:
    scripted = ScriptedJudge({"by": "other"})
    pool = JudgePool(plugin_host(scripted.record("other", provider_types=("fake",))), environ={"KEY": "the-key"})
    provider = ProviderConfig(type="fake", api_key_env="KEY")
    ask(pool.client(JudgeSettings(model="m", provider=provider)))
    (configured,) = scripted.providers
    assert configured is not None
    assert (configured.api_key, provider.api_key) == ("the-key", None)
    without = JudgePool(plugin_host(scripted.record("other", provider_types=("fake",))))
    error = failure(without.client(JudgeSettings(model="m", provider=provider)))
    assert (error.kind, error.message) == ("unavailable", "environment variable 'KEY' is not set")


def test_providers_that_differ_have_judges_of_their_own() -> None:
    scripted = ScriptedJudge({"by": "other"})
    pool = JudgePool(plugin_host(scripted.record("other", provider_types=("fake",))))
    providers = [ProviderConfig(type="fake", headers={"x": value}) for value in "aab"]

    async def run() -> None:
        for provider in providers:
            await pool.client(JudgeSettings(model="m", provider=provider)).judge(request())

    anyio.run(run)
    assert scripted.providers == [providers[0], providers[2]]


def test_a_judge_is_made_once_and_shut_down_once() -> None:
    custom = Custom(lambda _: JudgeReply(args={}))
    pool = JudgePool(plugin_host(custom.record()))

    async def run() -> list[str]:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(pool.client(JudgeSettings(model="m")).judge, request())
        return [*await pool.shutdown(), *await pool.shutdown()]

    assert (anyio.run(run), custom.configured, custom.ended) == ([], [None], 1)


@pytest.mark.parametrize("method", ["prepare", "configure"])
def test_a_judge_that_fails_to_start_is_shut_down(method: str, tmp_path: Path) -> None:
    custom = Custom(lambda _: None)
    setattr(custom, method, lambda _: 1 / 0)

    async def use() -> list[str]:
        pool = JudgePool(plugin_host(custom.record()), context=run_context(tmp_path))
        judge = pool.client(JudgeSettings(model="m"))
        for _ in range(2):
            with pytest.raises(JudgeError, match="division"):
                await judge.judge(request())
        return await pool.shutdown()

    assert anyio.run(use) == []
    assert custom.ended == 1


def test_a_failing_shutdown_is_a_warning() -> None:
    custom = Custom(lambda _: JudgeReply(args={}))
    custom.shutdown = lambda: 1 / 0  # type: ignore[method-assign,assignment]  # stands for any failure
    pool = JudgePool(plugin_host(custom.record()))

    async def run() -> list[str]:
        await pool.client(JudgeSettings(model="m")).judge(request())
        return await pool.shutdown()

    assert anyio.run(run) == ["judge 'copilot' did not shut down: ZeroDivisionError: division by zero"]


def raising(error: Exception) -> Callable[[JudgeRequest], Any]:
    def answer(_: JudgeRequest) -> Any:
        raise error

    return answer


def returning(**fields: Any) -> Callable[[JudgeRequest], JudgeReply]:
    return lambda _: JudgeReply(**{"args": {}, **fields})


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, (3, 4)),
        (CallTokens(input_tokens=3, output_tokens=4), (3, 4)),
        ({"input_tokens": -3, "output_tokens": "many"}, (0, 0)),
        ("lots", (0, 0)),
    ],
)
def test_what_a_failed_call_spent_counts_as_far_as_it_can(usage: Any, counted: tuple[int, int]) -> None:
    judge = client(Custom(raising(JudgeError("gone", kind="transport", usage=usage))).record())
    assert failure(judge).message == "gone"
    spent = judge.usage()
    assert spent is not None
    assert (spent.input_tokens, spent.output_tokens) == counted


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (raising(JudgeError("gone", kind="malformed")), "malformed", "gone"),
        (raising(ConnectionError("refused")), "transport", "refused"),
        (raising(KeyError()), "transport", "KeyError"),
        (lambda _: {"score": 1}, "transport", "judge 'copilot' returned dict, not a reply"),
        (returning(args=5), "transport", "judge 'copilot' returned a reply with int for the arguments"),
        (
            returning(usage="lots"),
            "transport",
            "judge 'copilot' returned a reply with a usage that is no CallTokens of counts: 'lots'",
        ),
        (
            returning(usage=CallTokens(input_tokens=-5)),
            "transport",
            "judge 'copilot' returned a reply with a usage that is no CallTokens of counts: "
            "CallTokens(input_tokens=-5, output_tokens=0)",
        ),
        (returning(cost=5), "transport", "judge 'copilot' returned a reply with a cost that is no Cost above zero: 5"),
    ],
    ids=["judge-error", "exception", "no-text", "no-reply", "no-arguments", "no-usage", "negative-usage", "no-cost"],
)
def test_what_goes_wrong_is_a_judge_error(answer: Any, kind: str, message: str) -> None:
    error = failure(client(Custom(answer).record()))
    assert (error.kind, error.message) == (kind, message)


def test_a_judge_that_does_not_keep_its_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: JudgeRequest) -> JudgeReply:
        await anyio.sleep_forever()

    monkeypatch.setattr(judges, "GRACE_S", 0.01)
    error = failure(client(Custom(hang).record()), timeout_s=0.01)
    assert (error.kind, error.message) == ("timeout", "judge 'copilot' did not keep the time limit")


def test_calls_of_one_model_are_limited() -> None:
    running: dict[str, int] = {"a": 0, "b": 0}
    most: dict[str, int] = {"a": 0, "b": 0}

    async def answer(asked: JudgeRequest) -> JudgeReply:
        running[asked.model] += 1
        most[asked.model] = max(most[asked.model], running[asked.model])
        await anyio.sleep(0.01)
        running[asked.model] -= 1
        return JudgeReply(args={})

    pool = JudgePool(plugin_host(Custom(answer).record()))

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(40):
                judge = pool.client(JudgeSettings(model="m"))
                group.start_soon(judge.judge, request(model="ab"[number % 2]))

    anyio.run(run)
    assert most == {"a": judges.MAX_CALLS, "b": judges.MAX_CALLS}


def charged(*replies: JudgeReply | JudgeError) -> Mapping[str, Any] | None:
    """What a trial is charged whose calls were answered so."""
    left = list(replies)

    def answer(_: JudgeRequest) -> JudgeReply:
        reply = left.pop(0)
        if isinstance(reply, JudgeError):
            raise reply
        return reply

    judge = client(Custom(answer).record())

    async def run() -> None:
        for reply in replies:
            if isinstance(reply, JudgeError):
                with pytest.raises(JudgeError):
                    await judge.judge(request())
            else:
                await judge.judge(request())

    anyio.run(run)
    usage = judge.usage()
    return None if usage is None else usage.model_dump(exclude_none=True)


def reply(tokens: int, *, cost: Cost | None = None, cache: str | None = None) -> JudgeReply:
    usage = CallTokens(input_tokens=tokens, output_tokens=1)
    return JudgeReply(args={}, usage=usage, cost=cost, cache=cache)


def test_tokens_of_failed_calls_count_and_cache_hits_do_not() -> None:
    failed = JudgeError("no", kind="malformed", usage={"input_tokens": 30, "output_tokens": 3})
    assert charged(reply(10), failed, JudgeError("slow", kind="timeout"), reply(99, cache="hit")) == {
        "input_tokens": 40,
        "output_tokens": 4,
        "total_tokens": 44,
        "call_count": 3,
    }


@pytest.mark.parametrize(("unit", "amount"), [("usd", 3.0), ("aiu", None)])
def test_costs_of_one_unit_sum_up(unit: str, amount: float | None) -> None:
    usage = charged(
        reply(1, cost=Cost(provider="p", unit="usd", amount=1)), reply(1, cost=Cost(provider="p", unit=unit, amount=2))
    )
    assert usage is not None
    expected = None if amount is None else {"provider": "p", "unit": "usd", "amount": amount}
    assert usage.get("cost") == expected


def test_failed_calls_cost_too() -> None:
    failed = JudgeError("no", kind="malformed", cost=Cost(provider="p", unit="usd", amount=2))
    usage = charged(reply(1, cost=Cost(provider="p", unit="usd", amount=1)), failed)
    assert usage is not None
    assert usage["cost"] == {"provider": "p", "unit": "usd", "amount": 3.0}


def test_a_call_that_is_cancelled_counts() -> None:
    async def hang(_: JudgeRequest) -> JudgeReply:
        await anyio.sleep_forever()

    judge = client(Custom(hang).record())

    async def run() -> None:
        with anyio.move_on_after(0.05):
            await judge.judge(request())

    anyio.run(run)
    usage = judge.usage()
    assert usage is not None
    assert (usage.call_count, usage.total_tokens) == (1, 0)


@pytest.mark.parametrize("replies", [(), (reply(5, cache="hit"),)])
def test_no_call_no_charge(replies: tuple[JudgeReply, ...]) -> None:
    assert charged(*replies) is None


def test_a_judge_that_wants_to_know_of_the_run_is_told_before_anything_else(tmp_path: Path) -> None:
    told: list[object] = []

    class Curious(Custom):
        def prepare(self, context: RunContext) -> None:
            told.append(context)

        def configure(self, provider: ProviderConfig | None) -> None:
            assert told, "the judge was not prepared"
            super().configure(provider)

    context = run_context(tmp_path)
    judge = Curious(lambda _: JudgeReply(args={}))
    pool = JudgePool(plugin_host(judge.record()), context=context)
    for _ in range(2):
        ask(pool.client(JudgeSettings(model="m", reasoning_effort=None, provider=None)))
    assert told == [context]


def test_one_type_that_two_judges_serve_is_ambiguous() -> None:
    judges_of_type = [ScriptedJudge([]).record(name, provider_types=("house",)) for name in ("first", "second")]
    pool = JudgePool(plugin_host(*judges_of_type))
    with pytest.raises(PluginError) as caught:
        pool.record(ProviderConfig(type="house"))
    assert caught.value.code == "plugin-conflict"
    assert caught.value.message.startswith("judge_provider.type 'house' is served by judges 'first' of ")
    assert " and 'second' of " in caught.value.message
