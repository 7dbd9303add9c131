"""The judge: models behind chat completions or responses."""

from __future__ import annotations

from vally import EndpointJudge, JudgeConversation, JudgeRequest, OptionalParameters, ProviderConfig
from vally_judge_openai.chat import ChatConversation
from vally_judge_openai.endpoint import Endpoint
from vally_judge_openai.responses import ResponsesConversation


class OpenAiJudge(EndpointJudge[Endpoint]):
    """Asks models of one provider."""

    def __init__(self) -> None:
        super().__init__()
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

    def connect(self, provider: ProviderConfig) -> Endpoint:
        """The endpoint of a provider."""
        return Endpoint(provider)

    def conversation(self, request: JudgeRequest, provider: ProviderConfig, endpoint: Endpoint) -> JudgeConversation:
        """The conversation in which a question is asked, in the dialect of the provider."""
        kind = ResponsesConversation if provider.wire_api == "responses" else ChatConversation
        return kind(request, provider, endpoint, self._parameters)

    async def say(self, text: str, model: str, provider: ProviderConfig, endpoint: Endpoint) -> None:
        """Send a short message and wait for any answer."""
        if provider.wire_api == "responses":
            await endpoint.respond({"model": model, "input": text})
        else:
            await endpoint.complete({"model": model, "messages": [{"role": "user", "content": text}]})
