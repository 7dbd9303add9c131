"""Scripts: the lines of a message that start with `!`, and the steps they describe."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vally.text.suggest import did_you_mean

NO_SCRIPT = "I have no script."
DEFAULT_TEXT = "done"

_WORDS = (
    *("tool", "also", "say", "reason", "usage", "grade", "sleep", "chunk-delay"),
    *("fail", "malformed", "truncate", "reset"),
)
_LINE = re.compile(rf"^[ \t]*!({'|'.join(_WORDS)})(?:[ \t]+(.*?))?[ \t\r]*$", re.MULTILINE)
_OTHER_LINE = re.compile(r"^[ \t]*!([A-Za-z][A-Za-z-]*)(?![^ \t\r\n]).*$", re.MULTILINE)
_SHORTEST_MISSPELT = 4
_NUMBERED = {"fail": "an HTTP status from 400 to 599", "truncate": "a number of pieces"}
_OPTION = re.compile(r"(times|retry-after)=(.+)")
_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


class ScriptError(ValueError):
    """A line of a script cannot be understood; the message quotes it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong instead of an answer: for the first `times` requests of a step, or for all of them."""

    kind: str
    value: int = 0
    message: str = "scripted failure"
    times: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Scripted token counts; cached input tokens are part of the input."""

    input: int
    output: int
    cached: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer: text, calls, or both; delays are in seconds."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    reasoning: str | None = None
    usage: Usage | None = None
    sleep: float = 0.0
    chunk_delay: float = 0.0
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The answers in their order, and the arguments for requests that ask for a grade."""

    steps: tuple[Step, ...]
    grades: tuple[Mapping[str, Any], ...] = ()

    def step(self, number: int) -> Step:
        """The answer number `number`, counted from 0; beyond the end the last one repeats."""
        return self.steps[min(number, len(self.steps) - 1)]

    def grade(self, number: int) -> Mapping[str, Any] | None:
        """The arguments of grade number `number`; None when the script has no grades."""
        return self.grades[min(number, len(self.grades) - 1)] if self.grades else None


def has_script(text: str) -> bool:
    """Whether a message has a line of a script, or one that is meant to be."""
    return _LINE.search(text) is not None or _misspelt(text) is not None


def _misspelt(text: str) -> str | None:
    """What is wrong with a line that is nearly one of a script; prompts may hold other lines that start with `!`."""
    for match in _OTHER_LINE.finditer(text):
        word = match[1].lower()
        if match[1] in _WORDS or (word not in _WORDS and len(word) < _SHORTEST_MISSPELT):
            continue
        if (hint := did_you_mean(word, _WORDS)) is not None:
            return f"script line '{match[0].strip()[:200]}': there is no '!{match[1]}', {hint}"
    return None


def parse_script(text: str, values: Mapping[str, str]) -> Script:
    """Read the script of a message with `${NAME}` replaced by `values`; raises `ScriptError`."""
    problem = _misspelt(text)
    if problem is not None:
        raise ScriptError(problem)
    reader = _Reader(values)
    for match in _LINE.finditer(text):
        reader.read(match[1], match[2] or "", match[0].strip())
    return reader.script()


@dataclass(slots=True)
class _Reader:
    """Collects steps; `next` holds what was said about the step that is still to come."""

    values: Mapping[str, str]
    steps: list[Step] = field(default_factory=list)
    grades: list[Mapping[str, Any]] = field(default_factory=list)
    next: Step = field(default_factory=Step)

    def read(self, word: str, rest: str, line: str) -> None:
        """Read one line."""
        try:
            self._read(word, rest)
        except ValueError as error:
            raise ScriptError(f"script line '{line[:200]}': {error}") from error

    def script(self) -> Script:
        """What was read; a script that does not end with a text gets one."""
        if self.steps and self.steps[-1].text is not None and self.next == Step():
            return Script(tuple(self.steps), tuple(self.grades))
        return Script((*self.steps, replace(self.next, text=DEFAULT_TEXT)), tuple(self.grades))

    def _read(self, word: str, rest: str) -> None:
        if word in ("tool", "also"):
            self._call(word, rest)
        elif word == "say":
            self._finish(replace(self.next, text=self._filled(rest)))
        elif word == "grade":
            self.grades.append(self._mapping(rest))
        elif word == "reason":
            so_far = f"{self.next.reasoning}\n" if self.next.reasoning else ""
            self.next = replace(self.next, reasoning=so_far + self._filled(rest))
        elif word == "usage":
            self.next = replace(self.next, usage=Usage(*_counts(self._filled(rest))))
        elif word == "sleep":
            self.next = replace(self.next, sleep=self.next.sleep + _seconds(self._filled(rest)))
        elif word == "chunk-delay":
            self.next = replace(self.next, chunk_delay=_seconds(self._filled(rest)))
        else:
            self.next = replace(self.next, faults=(*self.next.faults, _fault(word, self._filled(rest))))

    def _call(self, word: str, rest: str) -> None:
        name, _, arguments = rest.partition(" ")
        if not name:
            raise ValueError("a tool needs a name")
        call = Call(self._filled(name), self._mapping(arguments))
        if word == "also" and self.steps:
            self.steps[-1] = replace(self.steps[-1], calls=(*self.steps[-1].calls, call))
        else:
            self._finish(replace(self.next, calls=(call,)))

    def _finish(self, step: Step) -> None:
        self.steps.append(step)
        self.next = Step()

    def _filled(self, text: str) -> str:
        return _NAME.sub(lambda match: self.values.get(match[1], match[0]), text)

    def _mapping(self, text: str) -> Mapping[str, Any]:
        # Values are escaped, so that they can stand inside strings of JSON as well as for a number or a word.
        escaped = _NAME.sub(lambda match: _escaped(self.values.get(match[1], match[0])), text)
        value = json.loads(escaped.strip() or "{}")
        if not isinstance(value, dict):
            raise ValueError("the arguments must be a JSON object")
        return value


def _escaped(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _counts(text: str) -> list[int]:
    words = text.split()
    if not 2 <= len(words) <= 3:
        raise ValueError("expected IN OUT [CACHED]")
    return [_count(word, "IN OUT [CACHED]") for word in words]


def _count(word: str, expected: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", word):
        raise ValueError(f"expected {expected}, not '{word}'")
    return int(word)


def _seconds(text: str) -> float:
    seconds = float(text) if re.fullmatch(r"[0-9]{1,5}(\.[0-9]*)?|\.[0-9]+", text) else math.inf
    if seconds > 86_400:
        raise ValueError(f"expected seconds, not '{text}'" if text else "expected seconds")
    return seconds


def _fault(word: str, text: str) -> Fault:
    words = text.split()
    fault = Fault(kind=word)
    if expected := _NUMBERED.get(word):
        if not words:
            raise ValueError(f"expected {expected}")
        fault = replace(fault, value=_count(words.pop(0), expected))
    if word == "fail" and not 400 <= fault.value <= 599:
        raise ValueError(f"expected {expected}, not '{fault.value}'")
    while words and (option := _OPTION.fullmatch(words[0])):
        fault = _with_option(fault, option[1], option[2])
        words.pop(0)
    if words and word != "fail":
        raise ValueError(f"'{words[0]}' is not understood")
    return replace(fault, message=" ".join(words)) if words else fault


def _with_option(fault: Fault, name: str, value: str) -> Fault:
    if name == "times":
        return replace(fault, times=_count(value, "times=N"))
    return replace(fault, retry_after=_seconds(value))
