"""Tool calls of the protocol: names, arguments and results, which it leaves to the agents."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally import Event
from vally_executor_acp.agent import Params, mapping

ENDED = frozenset({"completed", "failed"})
_NAMES = {
    "read": "view",
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "search": "grep",
    "execute": "bash",
    "fetch": "web_fetch",
    "think": "think",
}
_SHELL_FLAGS = ("-c", "-lc")
_EXIT_KEYS = ("exit_code", "exitCode")
_ACTIVATE = "activate_skill"
_QUOTED = re.compile(r'"([^"]+)"')
_EXIT_CODE = re.compile(r"\s*Exit code (\d{1,3})\b")
_OUTPUT_KEYS = ("output", "content", "detailedContent", "formatted_output", "aggregated_output", "stdout", "message")


@dataclass(slots=True)
class Call:
    """One call as far as it was told; `event` is the recorded call, which grows with it.

    `named_by_id` is for agents that put the name of the tool in front of the id.
    """

    call_id: str
    named_by_id: bool = False
    event: Event | None = None
    ended: bool = False
    denied: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    first_title: str = ""
    terminal: str = ""

    def learn(self, told: Params, *, from_request: bool = False) -> None:
        """Take over what an update says; later statements replace earlier ones, empty ones nothing."""
        for key in ("kind", "title", "rawInput", "content", "rawOutput", "locations", "status", "name"):
            value = told.get(key)
            if value in (None, "", {}, []) or (from_request and key in self.facts):
                continue
            self.facts[key] = value
        self.first_title = self.first_title or str(told.get("title") or "")
        meta = mapping(told.get("_meta"))
        if meta:
            self.facts["_meta"] = {**self.facts.get("_meta", {}), **meta}
        self.terminal += str(mapping(meta.get("terminal_output_delta")).get("data") or "")

    @property
    def over(self) -> bool:
        """Whether nothing more is to be waited for."""
        return self.ended or self.denied

    @property
    def kind(self) -> str:
        """The kind of tool, `other` when the agent does not say."""
        return str(self.facts.get("kind") or "other")

    @property
    def title(self) -> str:
        """What the agent calls it for people."""
        return str(self.facts.get("title") or "")

    @property
    def tool(self) -> str:
        """The agent's own name of the tool where it tells one, else a name by its kind."""
        told = mapping(mapping(self.facts.get("_meta")).get("claudeCode")).get("toolName")
        if told:
            return str(told)
        if self.server is not None:
            return f"mcp__{self.server}__{mapping(self.facts.get('rawInput'))['tool']}"
        named = _NAMES.get(self.kind)
        if named is not None:
            return named
        if "skill" in mapping(self.arguments):
            return "skill"
        words = str(self._own_name or self.facts.get("name") or self.first_title).split()
        return words[0] if words else "other"

    @property
    def server(self) -> str | None:
        """The MCP server of the tool, where the input names both."""
        given = mapping(self.facts.get("rawInput"))
        server, tool = given.get("server"), given.get("tool")
        return server if isinstance(server, str) and isinstance(tool, str) else None

    @property
    def _own_name(self) -> str:
        name, mark, _ = self.call_id.partition("__")
        return name if self.named_by_id and mark else ""

    @property
    def arguments(self) -> Any:
        """The input as told; a command given as a list becomes a line, and the list stays as `argv`.

        Without an input the title of a command and the first place of anything else stand for it.
        """
        given = self.facts.get("rawInput")
        if isinstance(given, Mapping):
            if self.server is not None:
                return given.get("arguments", {})
            command = given.get("command")
            if isinstance(command, list) and all(isinstance(word, str) for word in command):
                return {**given, "command": _command_line(command), "argv": command}
            return dict(given)
        if given is not None:
            return given
        if self.kind == "execute":
            return {"command": self.title}
        if self._own_name == _ACTIVATE and (skill := _QUOTED.match(self.title)):
            return {"skill": skill[1]}
        places = [mapping(item).get("path") for item in self.facts.get("locations") or ()]
        return {"path": places[0]} if places and places[0] else {}

    @property
    def result(self) -> str:
        """The text of the result: the output itself, else what the agent shows of it to people."""
        output = self.facts.get("rawOutput")
        texts = (
            output if isinstance(output, str) else "",
            *_texts_of_output(output),
            "\n".join(_texts_of_content(self.facts.get("content"))),
            self.terminal,
        )
        told = next((text for text in texts if text), "")
        rest = {key: value for key, value in mapping(output).items() if key not in _EXIT_KEYS}
        return told or (json.dumps(rest, ensure_ascii=False, default=str) if rest else "")

    def found_exit_code(self) -> int | None:
        """The exit code of a command, where the agent tells it."""
        if self.kind != "execute" or self.server is not None:
            return None
        output, meta = mapping(self.facts.get("rawOutput")), mapping(self.facts.get("_meta"))
        parts = output.get("contents")
        told = [
            *(mapping(part).get("exitCode") for part in (parts if isinstance(parts, list) else ())),
            mapping(output.get("metadata")).get("exit"),
            *(output.get(key) for key in _EXIT_KEYS),
            mapping(meta.get("terminal_exit")).get("exit_code"),
        ]
        found = next((code for code in told if isinstance(code, int) and not isinstance(code, bool)), None)
        worded = _EXIT_CODE.match(self.result) if self.facts.get("status") == "failed" else None
        return int(worded[1]) if found is None and worded else found


def _command_line(words: list[str]) -> str:
    for flag in _SHELL_FLAGS:
        if flag in words[:-1]:
            return words[words.index(flag) + 1]
    return shlex.join(words)


def _texts_of_output(output: object) -> Iterator[str]:
    if isinstance(output, Mapping):
        yield from (value for key in _OUTPUT_KEYS if isinstance(value := output.get(key), str) and value)
        for place in (output, mapping(output.get("result"))):
            yield "\n".join(_texts_of_content(place.get("content")))
    yield "\n".join(_texts_of_content(output))


def _texts_of_content(content: object) -> Iterator[str]:
    for item in content if isinstance(content, list) else ():
        block = mapping(mapping(item).get("content")) or mapping(item)
        text = block.get("text") or mapping(block.get("resource")).get("text")
        if isinstance(text, str):
            yield text
