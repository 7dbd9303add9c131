"""The judge: models behind messages."""

from __future__ import annotations

from vally import EndpointJudge, JudgeConversation, JudgeRequest, OptionalParameters, ProviderConfig
from vally_judge_anthropic.conversation import MessagesConversation
from vally_judge_anthropic.endpoint import Endpoint

PREFLIGHT_TOKENS = 16


class AnthropicJudge(EndpointJudge[Endpoint]):
    """Asks models of one provider."""

    def __init__(self) -> None:
        super().__init__()
        self._parameters = OptionalParameters(
            {
                "temperature": ("temperature",),
                "effort": ("effort", "output_config.effort"),
                "max_tokens": ("max_tokens",),
                "tool_choice": ("tool_choice", "tool choice", "forces tool use"),
            },
            wanted_by_users=("effort",),
        )

    def connect(self, provider: ProviderConfig) -> Endpoint:
        """The endpoint of a provider."""
        return Endpoint(provider)

    def conversation(self, request: JudgeRequest, provider: ProviderConfig, endpoint: Endpoint) -> JudgeConversation:
        """The conversation in which a question is asked."""
        return MessagesConversation(request, provider, endpoint, self._parameters)

    async def say(self, text: str, model: str, provider: ProviderConfig, endpoint: Endpoint) -> None:
        """Send a short message and wait for any answer."""
        messages = [{"role": "user", "content": text}]
        await endpoint.message({"model": model, "max_tokens": PREFLIGHT_TOKENS, "messages": messages})
