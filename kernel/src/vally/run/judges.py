"""The judges of a run: one object per distinct provider, call limits, and the accounting of each trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally.errors import JudgeError, PluginError
from vally.lookups import contested_fact
from vally.model.evalspec import DEFAULT_JUDGE
from vally.model.results import JudgeUsage
from vally.model.trajectory import Cost
from vally.records import JudgeSpec
from vally.run.calling import described, invoke
from vally.run.judging import CallTokens, JudgeReply
from vally.run.providers import resolve_provider, same_provider_key

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import ProviderConfig
    from vally.run.judge_cache import JudgeCache
    from vally.run.judging import JudgeRequest
    from vally.run.trial import JudgeSettings, RunContext

MAX_CALLS = 8
"""Concurrent calls per provider and model."""

GRACE_S = 5.0
"""Seconds after the time limit of a request at which a judge that does not keep it is given up."""


class JudgePool:
    """Makes judges at first use and shuts them down together.

    `environ` holds the variables that providers name for their credentials. With `cache` valid answers are kept.
    `context` is told to judges that want to know of the run.
    """

    def __init__(
        self,
        host: PluginHost,
        *,
        environ: Mapping[str, str] | None = None,
        cache: JudgeCache | None = None,
        context: RunContext | None = None,
    ) -> None:
        self.cache = cache
        self._context = context
        self._host = host
        self._environ = environ or {}
        self._made: dict[object, tuple[JudgeSpec, Any]] = {}
        self._begun: dict[object, tuple[JudgeSpec, Any]] = {}
        self._judges: dict[object, tuple[JudgeSpec, Any]] = {}
        self._limits: dict[tuple[object, str], anyio.CapacityLimiter] = {}
        self._making = anyio.Lock()

    def client(self, settings: JudgeSettings) -> ItemJudge:
        """The judge of one trial."""
        return ItemJudge(self, settings)

    def record(self, provider: ProviderConfig | None) -> JudgeSpec:
        """The judge plugin that serves a provider; raises `PluginError` when none is installed."""
        if provider is None:
            record = self._host.require("judge", DEFAULT_JUDGE)
            assert isinstance(record, JudgeSpec)
            return record
        serving = [item for item in self._host.records("judge").values() if provider.type in _types(item)]
        if len(serving) > 1:
            raise contested_fact(self._host, f"judge_provider.type '{provider.type}' is served by judges", serving)
        if serving:
            assert isinstance(serving[0], JudgeSpec)
            return serving[0]
        known = sorted({kind for item in self._host.records("judge").values() for kind in _types(item)})
        raise PluginError(
            f"no judge serves judge_provider.type '{provider.type}'",
            code="unknown-judge",
            hints=[f"types: {', '.join(known)}"] if known else ["no judge plugin is installed"],
        )

    def resolved(self, provider: ProviderConfig | None) -> ProviderConfig | None:
        """The provider with its credentials; raises `VallyError` that names a variable which is not set."""
        return None if provider is None else resolve_provider(provider, self._environ)

    def make(self, provider: ProviderConfig | None) -> tuple[JudgeSpec, Any]:
        """The record and the judge object of a provider, which is not configured yet; raises `PluginError`."""
        key = same_provider_key(provider)
        if key not in self._made:
            record = self.record(provider)
            self._made[key] = (record, self._host.create(record))
        return self._made[key]

    async def judge(self, provider: ProviderConfig | None) -> tuple[JudgeSpec, Any]:
        """The record and the configured judge object of a provider; raises `JudgeError` of kind `unavailable`."""
        key = same_provider_key(provider)
        async with self._making:
            if key not in self._judges:
                try:
                    record, judge = self._begun[key] = self.make(provider)
                    await self._prepare(record, judge)
                    await invoke(judge.configure, self.resolved(provider), blocking=record.blocking)
                except Exception as error:
                    raise JudgeError(str(error) or type(error).__name__, kind="unavailable") from error
                self._judges[key] = (record, judge)
        return self._judges[key]

    async def _prepare(self, record: JudgeSpec, judge: Any) -> None:
        prepare = getattr(judge, "prepare", None)
        if prepare is not None and self._context is not None:
            await invoke(prepare, self._context, blocking=record.blocking)

    def limiter(self, provider: ProviderConfig | None, model: str) -> anyio.CapacityLimiter:
        """The limit on concurrent calls of one provider and model."""
        return self._limits.setdefault((same_provider_key(provider), model), anyio.CapacityLimiter(MAX_CALLS))

    async def shutdown(self) -> list[str]:
        """Shut all judges down, also those that failed to start; what goes wrong is returned as warnings."""
        warnings = []
        for record, judge in self._begun.values():
            try:
                with anyio.fail_after(30):
                    await invoke(judge.shutdown, blocking=record.blocking)
            except Exception as error:
                warnings.append(f"judge '{record.name}' did not shut down: {described(error)}")
        self._begun.clear()
        self._judges.clear()
        return warnings


def _types(record: Any) -> tuple[str, ...]:
    return record.provider_types if isinstance(record, JudgeSpec) else ()


class ItemJudge:
    """The judge of one trial behind limits and accounting; implements `JudgeClient`."""

    def __init__(self, pool: JudgePool, settings: JudgeSettings) -> None:
        self._pool = pool
        self._settings = settings
        self._input = 0
        self._output = 0
        self._calls = 0
        self._costs: dict[tuple[str, str], float] = {}

    @property
    def supports_files(self) -> bool:
        """Whether the judge can read evidence files; a judge that is not there cannot."""
        try:
            return self._pool.record(self._settings.provider).supports_files
        except PluginError:
            return False

    @property
    def result_metadata(self) -> Mapping[str, object]:
        """What the judge adds to the metadata of results."""
        try:
            return self._pool.record(self._settings.provider).metadata
        except PluginError:
            return {}

    def model_for(self, configured: str | None) -> str:
        """The model of an entry: its own, else that of the run."""
        return configured or self._settings.model

    def effort_for(self, configured: str | None) -> str | None:
        """The reasoning effort of an entry: its own, else that of the run."""
        return configured or self._settings.reasoning_effort

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask the judge; tokens of failed calls count too. Raises `JudgeError`, also for what else goes wrong."""
        cache = self._pool.cache
        if cache is None:
            return await self._ask(request)
        try:
            record = self._pool.record(self._settings.provider)
        except PluginError as error:
            raise JudgeError(error.message, kind="unavailable") from error
        key = await anyio.to_thread.run_sync(cache.key, record.name, self._settings.provider, request)
        stored = await anyio.to_thread.run_sync(cache.read, key, request)
        if stored is not None:
            return stored
        reply = await self._ask(request)
        await anyio.to_thread.run_sync(cache.write, key, reply)
        return replace(reply, cache="miss")

    async def _ask(self, request: JudgeRequest) -> JudgeReply:
        record, judge = await self._pool.judge(self._settings.provider)
        async with self._pool.limiter(self._settings.provider, request.model):
            try:
                reply = await _answer(record, judge, request)
            except JudgeError as error:
                self._count_failure(error)
                raise
            except BaseException:
                # A call that was cancelled did happen, although nobody can say what it has spent.
                self._count_failure(None)
                raise
        self._count(reply)
        return reply

    def _count(self, reply: JudgeReply) -> None:
        if reply.cache == "hit":
            return
        self._calls += 1
        if reply.usage is not None:
            self._input += reply.usage.input_tokens
            self._output += reply.usage.output_tokens
        self._count_cost(reply.cost)

    def _count_failure(self, error: JudgeError | None) -> None:
        self._calls += 1
        if error is not None:
            spent = _spent(error.usage)
            self._input += spent.input_tokens
            self._output += spent.output_tokens
            self._count_cost(error.cost if _is_cost(error.cost) else None)

    def _count_cost(self, cost: Cost | None) -> None:
        if cost is not None:
            key = (cost.provider, cost.unit)
            self._costs[key] = self._costs.get(key, 0.0) + cost.amount

    def usage(self) -> JudgeUsage | None:
        """Sums over all calls so far; None when there was none."""
        if not self._calls:
            return None
        return JudgeUsage(
            input_tokens=self._input,
            output_tokens=self._output,
            total_tokens=self._input + self._output,
            call_count=self._calls,
            cost=self._cost(),
        )

    def _cost(self) -> Cost | None:
        if len(self._costs) != 1:
            return None
        (((provider, unit), amount),) = self._costs.items()
        return Cost(provider=provider, unit=unit, amount=amount)


async def _answer(record: JudgeSpec, judge: Any, request: JudgeRequest) -> JudgeReply:
    try:
        with anyio.fail_after(request.timeout_s + GRACE_S):
            reply = await invoke(judge.judge, request, blocking=record.blocking)
    except JudgeError:
        raise
    except TimeoutError as error:
        raise JudgeError(f"judge '{record.name}' did not keep the time limit", kind="timeout") from error
    except Exception as error:
        raise JudgeError(str(error) or type(error).__name__, kind="transport") from error
    if (problem := _unusable(reply)) is not None:
        raise JudgeError(f"judge '{record.name}' returned {problem}", kind="transport")
    answer: JudgeReply = reply
    return answer


def _unusable(reply: object) -> str | None:
    """What is wrong with what a judge returned; None for a reply that can be counted."""
    if not isinstance(reply, JudgeReply):
        return f"{type(reply).__name__}, not a reply"
    args: object = reply.args
    if not isinstance(args, Mapping):
        return f"a reply with {type(args).__name__} for the arguments"
    if reply.usage is not None and _spent(reply.usage) != reply.usage:
        return f"a reply with a usage that is no CallTokens of counts: {reply.usage!r:.80}"
    return None if _is_cost(reply.cost) else f"a reply with a cost that is no Cost above zero: {reply.cost!r:.80}"


def _spent(usage: object) -> CallTokens:
    """The tokens that a judge tells, as `CallTokens` or as a mapping with its names; what is no count is left out."""
    told = usage if isinstance(usage, Mapping) else {}
    if isinstance(usage, CallTokens):
        told = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    counts = {key: told.get(key) for key in ("input_tokens", "output_tokens")}
    return CallTokens(**{key: count for key, count in counts.items() if type(count) is int and count >= 0})


def _is_cost(cost: object) -> bool:
    return cost is None or (isinstance(cost, Cost) and 0 <= cost.amount < math.inf)
