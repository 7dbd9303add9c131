"""What every dialect asks alike: a conversation, the tools on offer, and the answer to give."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_CALL_PREFIX = "call"
Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `group` tells which answer of this server an assistant message belongs to, when its ids say so."""

    role: Role
    text: str = ""
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request in no dialect. `tools` maps names to their type, `wants_json` is a schema-constrained answer."""

    model: str
    turns: tuple[Turn, ...]
    tools: Mapping[str, str] = field(default_factory=dict)
    wants_json: bool = False
    stream: bool = False
    with_usage: bool = True

    @property
    def characters(self) -> int:
        """Length of all texts."""
        return sum(len(turn.text) for turn in self.turns)

    def answers_after(self, index: int) -> int:
        """Number of assistant messages after a turn; the parts of one answer count once."""
        later = [turn for turn in self.turns[index + 1 :] if turn.role == "assistant"]
        groups = {turn.group for turn in later if turn.group is not None}
        return len(groups) + sum(1 for turn in later if turn.group is None)

    def key(self, index: int, step: int) -> str:
        """A digest of the model, of all up to a turn, and of a step."""
        parts = [self.model, *(f"{turn.role}:{turn.text}" for turn in self.turns[: index + 1]), str(step)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """One call of a tool with the id that its result will name; `kind` is the type of the tool."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    kind: str = "function"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to answer, in no dialect; cached input tokens are part of the input."""

    group: str
    model: str
    text: str | None = None
    calls: tuple[AnswerCall, ...] = ()
    reasoning: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


Event = tuple[str | None, Any]
"""An event of a stream: its name, and its data as JSON or as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """An answer in a dialect: as one body, and as the events of a stream."""

    body: Any
    events: tuple[Event, ...]


def new_group() -> str:
    """A fresh mark of one answer, part of all its ids."""
    return secrets.token_hex(8)


def call_id(group: str, number: int) -> str:
    """The id of a call; it says which answer it belongs to."""
    return f"{_CALL_PREFIX}_{group}_{number}"


def group_of(identifier: object) -> str | None:
    """The answer that an id of this server belongs to; None for foreign ids."""
    if not isinstance(identifier, str):
        return None
    prefix, _, rest = identifier.partition("_")
    group, separator, number = rest.partition("_")
    return group if prefix == _CALL_PREFIX and separator and number.isdigit() else None


def text_of(content: object) -> str:
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(_texts(content)) if isinstance(content, list) else ""


def _texts(parts: Iterable[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            text = part.get("text")
            if isinstance(text, str):
                yield text
            elif "content" in part:
                yield text_of(part["content"])


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list, nothing for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def pieces(text: str) -> list[str]:
    """A text in the pieces in which a stream sends it: a word and the blanks after it."""
    found: list[str] = []
    word = ""
    for character in text:
        if word and word[-1].isspace() and not character.isspace():
            found.append(word)
            word = ""
        word += character
    return [*found, word] if word else found


def halves(text: str) -> list[str]:
    """A text in two pieces, as streams send the arguments of calls."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
