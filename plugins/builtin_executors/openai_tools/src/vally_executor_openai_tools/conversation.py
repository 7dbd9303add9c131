"""The messages so far, in the form of chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vally import ExecutorOptions
from vally_executor_openai_tools.config import SystemPrompt
from vally_executor_openai_tools.reply import Reply, ToolRequest

OWN_PROMPT = """\
You are an agent that works on a task by calling tools. The working directory is {work_dir}.
Look at what is there before you change it, check what you did, and do not ask questions: nobody answers.
When the task is done, say in a few words what you did, and call no tool."""


class Conversation:
    """Messages that grow with every prompt, answer and tool result."""

    def __init__(self, prompt: SystemPrompt | None, options: ExecutorOptions) -> None:
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": _system(prompt, options)}]
        self._call_ids: set[str] = set()

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """What the model is sent."""
        return self._messages

    def add_prompt(self, text: str) -> None:
        """The user says something. What the model thought before is for the calls of its own turn only."""
        for message in self._messages:
            message.pop("reasoning", None)
            message.pop("reasoning_content", None)
        self._messages.append({"role": "user", "content": text})

    def add_reply(self, reply: Reply) -> tuple[ToolRequest, ...]:
        """The model answered; returns its calls with ids that are unique in the conversation."""
        calls = tuple(ToolRequest(self._unique(call.call_id), call.name, call.arguments) for call in reply.calls)
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or reply.refusal or ""}
        if calls:
            message["tool_calls"] = [_echo(call) for call in calls]
        if reply.reasoning is not None:
            message[reply.reasoning_key] = reply.reasoning
        self._messages.append(message)
        return calls

    def add_result(self, call_id: str, text: str) -> None:
        """A tool answered."""
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def _unique(self, told: str) -> str:
        chosen, number = told or f"call-{len(self._call_ids)}", 2
        while chosen in self._call_ids:
            chosen, number = f"{told or 'call'}-{number}", number + 1
        self._call_ids.add(chosen)
        return chosen


def _system(prompt: SystemPrompt | None, options: ExecutorOptions) -> str:
    own = OWN_PROMPT.format(work_dir=options.work_dir)
    if prompt is None:
        return own
    return prompt.content if prompt.mode == "replace" else f"{own}\n\n{prompt.content}"


def _echo(call: ToolRequest) -> dict[str, Any]:
    """A call as it goes back; endpoints refuse arguments that are no JSON, even those of their own model."""
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    try:
        readable = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        readable = False
    function = {"name": call.name, "arguments": arguments if readable else "{}"}
    return {"id": call.call_id, "type": "function", "function": function}
