"""The judge: models behind messages."""

from __future__ import annotations

import anyio

from vally import (
    EndpointError,
    JudgeError,
    JudgeReply,
    JudgeRequest,
    OptionalParameters,
    ProviderConfig,
    ask_judge,
)
from vally_judge_anthropic.conversation import MessagesConversation
from vally_judge_anthropic.endpoint import Endpoint

PREFLIGHT_TIMEOUT_S = 30.0
PREFLIGHT_MESSAGE = "Reply with the word ok."
PREFLIGHT_TOKENS = 16


class AnthropicJudge:
    """Asks models of one provider."""

    def __init__(self) -> None:
        self._provider: ProviderConfig | None = None
        self._endpoint: Endpoint | None = None
        self._parameters = OptionalParameters(
            {
                "temperature": ("temperature",),
                "effort": ("effort", "output_config.effort"),
                "max_tokens": ("max_tokens",),
                "tool_choice": ("tool_choice", "tool choice", "forces tool use"),
            },
            wanted_by_users=("effort",),
        )

    def configure(self, provider: ProviderConfig | None) -> None:
        """Make the client; raises `JudgeError` without a provider."""
        if provider is None:
            raise JudgeError("this judge needs defaults.judge_provider", kind="unavailable")
        self._provider = provider
        self._endpoint = Endpoint(provider)

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Ask one question; raises `JudgeError`."""
        provider, endpoint = self._ready()
        return await ask_judge(request, MessagesConversation(request, provider, endpoint, self._parameters))

    def _ready(self) -> tuple[ProviderConfig, Endpoint]:
        if self._provider is None or self._endpoint is None:
            raise JudgeError("the judge is not configured", kind="unavailable")
        return self._provider, self._endpoint

    async def preflight(self, model: str) -> None:
        """Ask the model for one word; raises `JudgeError` when it does not answer."""
        provider, endpoint = self._ready()
        message = {"role": "user", "content": PREFLIGHT_MESSAGE}
        body = {"model": provider.model or model, "max_tokens": PREFLIGHT_TOKENS, "messages": [message]}
        try:
            with anyio.fail_after(PREFLIGHT_TIMEOUT_S):
                await endpoint.message(body)
        except EndpointError as error:
            raise JudgeError(error.message, kind="transport") from error
        except TimeoutError:
            raise JudgeError(f"no answer within {PREFLIGHT_TIMEOUT_S:g}s", kind="timeout") from None

    async def shutdown(self) -> None:
        """Close the client."""
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None
