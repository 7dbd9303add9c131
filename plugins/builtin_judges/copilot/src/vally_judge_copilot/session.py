"""What a session of the judge may do: read the evidence and submit a grade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import JudgeRequest
from vally_executor_copilot_sdk import Answer, answering, is_inside

if TYPE_CHECKING:
    from copilot import Tool

READING_TOOLS = ("view", "grep", "glob")
ACCEPTED = "Received."
_REFUSED = "Only the evidence may be read."


def session_arguments(
    request: JudgeRequest, directory: Path, on_call: Callable[[object], None], *, as_json: bool
) -> dict[str, Any]:
    """Arguments of `create_session` for one question, all but its model; `directory` is what may be read."""
    tools = [] if as_json else [submit_tool(request, on_call)]
    reading = READING_TOOLS if request.evidence_dir is not None else ()
    told: dict[str, Any] = {
        "working_directory": str(directory),
        "reasoning_effort": request.reasoning_effort,
        "tools": tools,
        "available_tools": [*reading, *(tool.name for tool in tools)],
        "system_message": {"mode": "replace", "content": system_text(request, as_json=as_json)},
        "on_permission_request": answering(lambda asked: decide(asked, directory)),
        "skip_custom_instructions": True,
        "included_builtin_skills": [],
        "enable_config_discovery": False,
        "enable_session_telemetry": False,
        "enable_session_store": False,
        "memory": {"enabled": False},
        "streaming": False,
    }
    return {name: value for name, value in told.items() if value is not None}


def decide(asked: Mapping[str, Any], directory: Path) -> Answer:
    """Allow reading below `directory`, links followed, and nothing else."""
    path = asked.get("path")
    if asked.get("kind") == "read" and isinstance(path, str) and is_inside(path, (directory,)):
        return Answer(True)
    return Answer(False, _REFUSED)


def submit_tool(request: JudgeRequest, on_call: Callable[[object], None]) -> Tool:
    """The tool of the question. A call ends the turn, so that whoever asks looks at its arguments."""
    from copilot import Tool, ToolResult

    async def submit(invocation: Any) -> ToolResult:
        on_call(invocation.arguments)
        return ToolResult(text_result_for_llm=ACCEPTED)

    tool = request.tool
    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=dict(tool.parameters),
        handler=submit,
        skip_permission=True,
        is_terminal=True,
    )


def system_text(request: JudgeRequest, *, as_json: bool) -> str:
    """The system message, which with `as_json` asks for an object instead of a call."""
    if not as_json:
        return request.system_message
    wanted = f"Answer with one JSON object that fits the given schema. It counts as the call of {request.tool.name}."
    return request.system_message + f"\n\n{wanted}"
