"""A judge that gives scripted answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vally.errors import JudgeError

if TYPE_CHECKING:
    from vally.model.evalspec import ProviderConfig
    from vally.records import JudgeSpec
    from vally.run.judging import JudgeReply, JudgeRequest

Reply = Any
"""A mapping (the arguments of the tool call), an exception (raised), or anything else for an answer that is no call."""


class ScriptedJudge:
    """Answers from a list, one reply per call of the model, or from a function of the request.

    A reply that is no mapping, or that the request's `check` refuses, is answered by a reminder, which takes the next
    reply; after the last reminder the call fails as malformed. A single mapping answers every call. `requests`
    collects what was asked. It can be given to `grade` as it is, or as a plugin by `record()`.
    """

    def __init__(
        self,
        replies: Mapping[str, object] | Sequence[Reply] | Callable[[JudgeRequest], Reply],
        *,
        supports_files: bool = False,
    ) -> None:
        self.supports_files = supports_files
        self._replies = replies
        self._given = 0
        self.requests: list[JudgeRequest] = []
        self.providers: list[ProviderConfig | None] = []
        self.shutdowns = 0

    def record(self, name: str | None = None, *, provider_types: tuple[str, ...] = ()) -> JudgeSpec:
        """The record of this very object; without a name it takes the place of the default judge."""
        from vally.model.evalspec import DEFAULT_JUDGE
        from vally.records import JudgeSpec

        return JudgeSpec(
            name=name or DEFAULT_JUDGE,
            summary="gives scripted answers",
            factory=lambda: self,
            provider_types=provider_types,
            supports_files=self.supports_files,
        )

    def configure(self, provider: ProviderConfig | None) -> None:
        """Remember the provider."""
        self.providers.append(provider)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Answer with the next valid reply; raises `JudgeError`."""
        from vally.run.judging import CallTokens, JudgeReply

        self.requests.append(request)
        problem: str | None = None
        for reminders in range(request.max_reminders + 1):
            reply = self._next(request)
            is_call = isinstance(reply, Mapping)
            problem = request.check(reply) if is_call else f"no call of {request.tool.name}"
            if problem is None:
                calls = reminders + 1
                tokens = CallTokens(input_tokens=10 * calls, output_tokens=5 * calls)
                return JudgeReply(args=dict(reply), reminders_used=reminders, usage=tokens, model=request.model)
        calls = request.max_reminders + 1
        usage = {"input_tokens": 10 * calls, "output_tokens": 5 * calls}
        raise JudgeError(problem or "no valid answer", kind="malformed", usage=usage)

    async def shutdown(self) -> None:
        """Count the call."""
        self.shutdowns += 1

    def model_for(self, configured: str | None) -> str:
        """The model of an entry, as a judge client says it."""
        return configured or "scripted-model"

    def effort_for(self, configured: str | None) -> str | None:
        """The reasoning effort of an entry, as a judge client says it."""
        return configured

    def _next(self, request: JudgeRequest) -> Reply:
        if callable(self._replies):
            reply = self._replies(request)
        elif isinstance(self._replies, Mapping):
            reply = self._replies
        elif self._given < len(self._replies):
            reply = self._replies[self._given]
        else:
            raise JudgeError("the script has no further reply", kind="unavailable")
        self._given += 1
        if isinstance(reply, BaseException):
            raise reply
        return reply
