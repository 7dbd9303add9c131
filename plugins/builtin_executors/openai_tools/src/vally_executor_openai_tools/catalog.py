"""The tools as the model sees them: names, descriptions, arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

ToolName = Literal["bash", "view", "create", "edit", "glob", "grep", "skill"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool: a text, or with `pair` a list of two integers."""

    description: str
    required: bool = True
    pair: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        if self.pair:
            kind: dict[str, Any] = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
        else:
            kind = {"type": "string"}
        return {**kind, "description": self.description}

    def fits(self, value: object) -> bool:
        """Whether a value is of its type."""
        if not self.pair:
            return isinstance(value, str)
        return isinstance(value, list) and len(value) == 2 and all(type(item) is int for item in value)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool and its arguments."""

    description: str
    arguments: Mapping[str, Argument]

    def problem(self, given: Mapping[str, object]) -> str | None:
        """Why it cannot be called with these arguments; None when it can. A null counts as left out."""
        for name, argument in self.arguments.items():
            value = given.get(name)
            if value is None and argument.required:
                return f"the argument '{name}' is missing"
            if value is not None and not argument.fits(value):
                return f"the argument '{name}' must be {'a list of two integers' if argument.pair else 'a string'}"
        if unknown := sorted(set(given) - set(self.arguments)):
            return f"there is no argument '{unknown[0]}'; there are {', '.join(self.arguments)}"
        return None


_PATH = Argument("Absolute path, or path relative to the working directory.")
_START = Argument("Directory to start from; default is the working directory.", required=False)

TOOLS: Mapping[ToolName, Tool] = MappingProxyType(
    {
        "bash": Tool(
            "Run a command with /bin/sh in the working directory and return its output. Each call is a new shell; "
            "background processes are ended with it.",
            {
                "command": Argument("The command."),
                "description": Argument("What it does, in a few words.", required=False),
            },
        ),
        "view": Tool(
            "Show a text file with line numbers, or list a directory.",
            {"path": _PATH, "view_range": Argument("First and last line; -1 is the end.", required=False, pair=True)},
        ),
        "create": Tool(
            "Create a new file, and its directories. Fails when the file exists; use edit then.",
            {"path": _PATH, "file_text": Argument("Content of the file.")},
        ),
        "edit": Tool(
            "Replace a text in a file. The old text must occur exactly once, so give enough of its surroundings.",
            {
                "path": _PATH,
                "old_str": Argument("Text to replace, with exact whitespace."),
                "new_str": Argument("Text to put in its place."),
            },
        ),
        "glob": Tool(
            "Find files and directories by name, such as src/**/*.py.",
            {"pattern": Argument("The pattern; ** stands for any number of directories."), "path": _START},
        ),
        "grep": Tool(
            "Search lines of text files by a regular expression.",
            {
                "pattern": Argument("JavaScript regular expression; (?i) at its start ignores case."),
                "path": Argument("File, or directory to start from; default is the working directory.", required=False),
                "glob": Argument("Only files that match this pattern, such as **/*.py.", required=False),
            },
        ),
        "skill": Tool(
            "Read the instructions of a skill. Do this first when a skill fits the task.",
            {"skill": Argument("Name of the skill.")},
        ),
    }
)


def function_schema(name: str, tool: Tool, more: str = "") -> dict[str, Any]:
    """A tool in the form of chat completions; `more` is added to its description."""
    parameters = {
        "type": "object",
        "properties": {key: argument.schema() for key, argument in tool.arguments.items()},
        "required": [key for key, argument in tool.arguments.items() if argument.required],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": tool.description + more, "parameters": parameters},
    }


def skills_text(skills: Iterable[tuple[str, str]]) -> str:
    """The skills on offer, by name and description, for the description of the tool `skill`."""
    return "".join(f"\n- {name}: {' '.join(description.split())}" for name, description in skills)
