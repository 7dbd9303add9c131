"""Doing what the model asks for: one call of a tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio

from vally import ExecutorOptions, SpecError, parse_duration, parse_skill
from vally_executor_openai_tools import files, searching
from vally_executor_openai_tools.catalog import TOOLS, Tool, function_schema, skills_text
from vally_executor_openai_tools.clipping import clipped
from vally_executor_openai_tools.config import OpenAiToolsConfig
from vally_executor_openai_tools.outcome import Outcome, ToolError
from vally_executor_openai_tools.places import Places
from vally_executor_openai_tools.shell import run_command

NOT_JSON = "arguments-not-json"


class Toolbox:
    """The tools of one trial; those that the config leaves out do not exist, nor does `skill` without a skill."""

    def __init__(self, config: OpenAiToolsConfig, options: ExecutorOptions) -> None:
        self._config = config
        self._options = options
        self._places = Places(options)
        self._skills = {skill.name: skill for skill in options.skills}
        self._tools: dict[str, Tool] = {name: TOOLS[name] for name in config.tools if name != "skill" or self._skills}

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as the model is told of them."""
        offered = skills_text((skill.name, skill.description) for skill in self._options.skills)
        return [
            function_schema(name, tool, f"\nSkills:{offered}" if name == "skill" else "")
            for name, tool in self._tools.items()
        ]

    async def call(self, name: str, arguments: object) -> Outcome:
        """Do one call; whatever is wrong with it becomes a failed outcome that the model can read.

        `arguments` is a mapping, or the text of one in JSON.
        """
        try:
            given = self._checked(name, arguments)
            if name == "bash":
                return await self._bash(given)
            text = await anyio.to_thread.run_sync(self._work(name, given), abandon_on_cancel=name in _READING)
            return Outcome(text=clipped(text, self._config.tool_output_bytes))
        except ToolError as error:
            text = clipped(error.message, self._config.tool_output_bytes)
            return Outcome(text=text, success=False, error_code=error.code)

    def _checked(self, name: str, arguments: object) -> Mapping[str, Any]:
        tool = self._tools.get(name)
        if tool is None:
            there_are = f"; there are {', '.join(self._tools)}" if self._tools else ""
            raise ToolError(f"there is no tool '{name}'{there_are}", "unknown-tool")
        given = _parsed(arguments)
        problem = tool.problem(given)
        if problem is not None:
            raise ToolError(problem, "invalid-arguments")
        return {key: value for key, value in given.items() if value is not None}

    async def _bash(self, given: Mapping[str, Any]) -> Outcome:
        return await run_command(
            given["command"],
            self._options,
            timeout_ms=parse_duration(self._config.bash_timeout),
            output_bytes=self._config.tool_output_bytes,
        )

    def _work(self, name: str, given: Mapping[str, Any]) -> Callable[[], str]:
        if name == "skill":
            return partial(self._skill, given["skill"])
        return partial(_FUNCTIONS[name], self._places, **given)

    def _skill(self, name: str) -> str:
        skill = self._skills.get(name)
        if skill is None:
            raise ToolError(f"there is no skill '{name}'; there are {', '.join(self._skills)}", "unknown-skill")
        try:
            body = parse_skill(skill.path).body.strip()
        except SpecError as error:
            # The agent itself may have changed or removed it.
            raise ToolError(f"skill '{name}' cannot be read: {error.message}") from None
        directory = skill.path.parent
        found = searching.glob(self._places, "**/*", str(directory))
        return f"{body}\n\nFiles in {self._places.shown(directory.resolve())}:\n{found}"


_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "view": files.view,
    "create": files.create,
    "edit": files.edit,
    "glob": searching.glob,
    "grep": searching.grep,
}
_READING = frozenset({"view", "glob", "grep", "skill"})
"""Tools that change nothing, so that nobody has to wait for them once they are not wanted any more."""


def _parsed(arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments.strip() or "{}")
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the arguments are not valid JSON: {error}", NOT_JSON) from None
    if not isinstance(arguments, Mapping):
        raise ToolError("the arguments must be a JSON object", "invalid-arguments")
    return arguments
