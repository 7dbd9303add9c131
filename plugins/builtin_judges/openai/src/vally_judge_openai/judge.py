"""The judge: models behind chat completions or responses."""

from __future__ import annotations

import anyio

from vally import (
    EndpointError,
    JudgeConversation,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    OptionalParameters,
    ProviderConfig,
    ask_judge,
)
from vally_judge_openai.chat import ChatConversation
from vally_judge_openai.endpoint import Endpoint
from vally_judge_openai.responses import ResponsesConversation

PREFLIGHT_TIMEOUT_S = 30.0
PREFLIGHT_MESSAGE = "Reply with the word ok."


class OpenAiJudge:
    """Asks models of one provider."""

    def __init__(self) -> None:
        self._provider: ProviderConfig | None = None
        self._endpoint: Endpoint | None = None
        # No name is a word of another, and what endpoints say about the more special ones may hold the others.
        self._parameters = OptionalParameters(
            {
                "temperature": ("temperature",),
                "seed": ("seed",),
                "reasoning_effort": ("reasoning_effort", "reasoning effort", "reasoning"),
                "reasoning": ("reasoning.effort", "reasoning effort", "reasoning_effort", "reasoning"),
                "store": ("store",),
                "strict": ("strict",),
                "tool_choice": ("tool_choice", "tool choice", "toolChoice", "tool_choice.function"),
            },
            wanted_by_users=("reasoning_effort", "reasoning"),
        )

    def configure(self, provider: ProviderConfig | None) -> None:
        """Make the client; raises `JudgeError` without a provider."""
        if provider is None:
            raise JudgeError("this judge needs defaults.judge_provider", kind="unavailable")
        self._provider = provider
        self._endpoint = Endpoint(provider)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask one question; raises `JudgeError`."""
        return await ask_judge(request, self._conversation(request))

    def _conversation(self, request: JudgeRequest) -> JudgeConversation:
        provider, endpoint = self._ready()
        kind = ResponsesConversation if provider.wire_api == "responses" else ChatConversation
        return kind(request, provider, endpoint, self._parameters)

    def _ready(self) -> tuple[ProviderConfig, Endpoint]:
        if self._provider is None or self._endpoint is None:
            raise JudgeError("the judge is not configured", kind="unavailable")
        return self._provider, self._endpoint

    async def preflight(self, model: str) -> None:
        """Ask the model for one word; raises `JudgeError` when it does not answer."""
        provider, endpoint = self._ready()
        name = provider.model or model
        try:
            with anyio.fail_after(PREFLIGHT_TIMEOUT_S):
                if provider.wire_api == "responses":
                    await endpoint.respond({"model": name, "input": PREFLIGHT_MESSAGE})
                else:
                    message = {"role": "user", "content": PREFLIGHT_MESSAGE}
                    await endpoint.complete({"model": name, "messages": [message]})
        except EndpointError as error:
            raise JudgeError(error.message, kind="transport") from error
        except TimeoutError:
            raise JudgeError(f"no answer within {PREFLIGHT_TIMEOUT_S:g}s", kind="timeout") from None

    async def shutdown(self) -> None:
        """Close the client."""
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None
