"""One entry of a list of `tool-calls`: conditions that one call must meet, all of them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from vally import Config, Pattern, Regex, ToolCall, compile_regex
from vally_grader_tool_calls.read_only import is_read_only


class ToolMatch(Config):
    """Patterns over the name, the arguments and the result of a call; and for required calls, how many and where."""

    name: Pattern
    command: Pattern | None = None
    path: Pattern | None = None
    args: dict[str, Pattern] | None = None
    pattern: Pattern | None = None
    result: Pattern | None = None
    write_only: bool = False
    read_only: bool = False
    min_count: int = Field(default=1, ge=1)
    final: bool = False
    at_step: int | None = Field(default=None, ge=0)
    before_step: int | None = Field(default=None, ge=1)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Keys that contradict others, and how."""
        if self.args is not None and not self.args:
            yield "args", "must not be empty"
        if self.write_only and self.read_only:
            yield "write_only", "excludes 'read_only'"
        if self.at_step is not None and self.before_step is not None and self.at_step >= self.before_step:
            yield "at_step", "must be less than 'before_step'"
        if self.final and self.min_count > 1:
            yield "final", "excludes a 'min_count' above 1"

    @property
    def label(self) -> str:
        """The name and every set condition, as evidence shows them."""
        shown = [f"{key}=/{pattern}/" for key, pattern in self._patterns()]
        flags = [flag for flag in ("write_only", "read_only") if getattr(self, flag)]
        return " ".join([self.name, *shown, *flags])

    def _patterns(self) -> Iterator[tuple[str, str]]:
        arguments = [("command", self.command), ("path", self.path)]
        arguments += [(f"args.{key}", pattern) for key, pattern in (self.args or {}).items()]
        for key, pattern in (*arguments, ("pattern", self.pattern), ("result", self.result)):
            if pattern is not None:
                yield key, pattern


class Matcher:
    """An entry with its patterns compiled; raises `InvalidRegex` for the first that is not valid."""

    def __init__(self, entry: ToolMatch) -> None:
        self.entry = entry
        self.label = entry.label
        self._name = compile_regex(entry.name)
        self._names: dict[str, bool] = {}
        wanted = [("command", entry.command), ("path", entry.path), *(entry.args or {}).items()]
        self._arguments = [(key, compile_regex(pattern)) for key, pattern in wanted if pattern is not None]
        self._pattern = None if entry.pattern is None else compile_regex(entry.pattern)
        self._result = None if entry.result is None else compile_regex(entry.result)

    def matches(self, call: ToolCall) -> bool:
        """Whether the call meets every condition."""
        return (
            self._has_name(call.name)
            and self._has_access(call)
            and all(_fits(regex, _argument(call, key)) for key, regex in self._arguments)
            and (self._pattern is None or _fits(self._pattern, call.arguments_json))
            and (self._result is None or _fits(self._result, call.result_text))
        )

    def _has_name(self, name: str) -> bool:
        # An agent calls few tools, but often.
        if name not in self._names:
            self._names[name] = self._name.search(name) is not None
        return self._names[name]

    def _has_access(self, call: ToolCall) -> bool:
        if self.entry.read_only:
            return is_read_only(call)
        return not (self.entry.write_only and is_read_only(call))

    def counts(self, call: ToolCall) -> bool:
        """Whether the call meets every condition at a step that the entry allows."""
        at, before = self.entry.at_step, self.entry.before_step
        return (at is None or call.step == at) and (before is None or call.step < before) and self.matches(call)


def _argument(call: ToolCall, key: str) -> str | None:
    value = call.arguments.get(key) if isinstance(call.arguments, dict) else None
    return value if isinstance(value, str) else None


def _fits(regex: Regex, text: str | None) -> bool:
    return text is not None and regex.search(text) is not None
