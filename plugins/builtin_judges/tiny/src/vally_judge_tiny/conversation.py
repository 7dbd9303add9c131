"""A question in the form of a chat with the model; the grammar of its answers is made of the tool's schema."""

from __future__ import annotations

from collections.abc import Sequence

from vally import CallTokens, JudgeAnswer, JudgeRequest, clip_middle, judge_reminder, submitted_call
from vally_judge_tiny.narrowing import longest_answer, narrowed
from vally_judge_tiny.process import ModelProcess

SYSTEM_BYTES = 800
USER_BYTES = 2000
"""What the model reads of a question: reading takes it most of the time, and it would understand no more of it all."""


class TinyConversation:
    """One question and what was said since."""

    def __init__(self, request: JudgeRequest, model: ModelProcess) -> None:
        self._model = model
        self._tool = request.tool.name
        self._seed = request.seed
        self._schema = narrowed(request.tool.parameters, request.check)
        self._answer = ""
        self._messages = [
            {"role": "system", "content": _windowed(request.system_message, SYSTEM_BYTES)},
            {"role": "user", "content": _windowed(request.user_message, USER_BYTES)},
        ]

    async def ask(self) -> JudgeAnswer:
        """Send the conversation so far; raises `EndpointError`."""
        answer = await self._model.complete(
            {
                "messages": self._messages,
                "temperature": 0,
                "max_tokens": longest_answer(self._schema),
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": self._tool, "schema": self._schema, "strict": True},
                },
                **({} if self._seed is None else {"seed": self._seed}),
            }
        )
        self._answer = str(answer["content"])
        return JudgeAnswer(
            calls=(submitted_call(self._answer),) if answer["finished"] else (),
            problem="the answer is too long",
            usage=CallTokens(input_tokens=answer["input_tokens"], output_tokens=answer["output_tokens"]),
        )

    def remind(self, problems: Sequence[str]) -> None:
        """Append the last answer and what was wrong with it."""
        self._messages += [
            {"role": "assistant", "content": self._answer},
            {"role": "user", "content": judge_reminder(self._tool, "; ".join(problems), as_json=True)},
        ]


def _windowed(text: str, limit: int) -> str:
    return clip_middle(text, limit, limit * 6 // 10, limit * 3 // 10)
