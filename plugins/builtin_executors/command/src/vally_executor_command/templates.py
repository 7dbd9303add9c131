"""Templates of command lines: strings and groups of strings with placeholders in braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

PLACEHOLDERS = (
    "prompt",
    "prompt_file",
    "workspace",
    "trial_dir",
    "model",
    "reasoning_effort",
    "session_id",
    "mcp_config",
    "usage_file",
    "turn",
)
Template = Sequence[str | Sequence[str]]

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])")


class EmptyPlaceholder(ValueError):
    """A placeholder has no value and does not stand in a group."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(
            f"placeholder '{{{name}}}' in '{text}' has no value; put the argument into a group to leave it out"
        )


def render(template: Template, values: Mapping[str, str]) -> list[str]:
    """Fill a template; a group with an empty placeholder is dropped. Raises `EmptyPlaceholder` elsewhere."""
    arguments: list[str] = []
    for item in template:
        if isinstance(item, str):
            arguments.append(fill(item, values))
        elif all(values.get(name) for part in item for name in names(part)):
            arguments += [fill(part, values) for part in item]
    return arguments


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill one string; raises `EmptyPlaceholder`."""

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0][0]
        if not values.get(name):
            raise EmptyPlaceholder(name, text)
        return values[name]

    return _TOKEN.sub(value, text)


def used(template: Template) -> frozenset[str]:
    """The placeholders of a template."""
    return frozenset(name for text in _texts(template) for name in names(text))


def names(text: str) -> Iterator[str]:
    """The placeholders of one string."""
    return (match["name"] for match in _TOKEN.finditer(text) if match["name"] is not None)


def check(texts: Iterable[str]) -> None:
    """Raise `ValueError` for a placeholder that does not exist, and for a brace that is none."""
    for text in texts:
        for match in _TOKEN.finditer(text):
            if match["lone"]:
                raise ValueError(f"'{text}' has a single brace; write '{{{{' or '}}}}' for a literal one")
            if match["name"] is not None and match["name"] not in PLACEHOLDERS:
                known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                raise ValueError(f"unknown placeholder '{match[0]}' in '{text}'; known are {known}")


def check_template(template: Template) -> None:
    """Raise `ValueError` for a template that no turn could fill."""
    if not template or not isinstance(template[0], str) or not template[0]:
        raise ValueError("the first item of a command must be the program")
    check(_texts(template))


def _texts(template: Template) -> Iterator[str]:
    for item in template:
        yield from [item] if isinstance(item, str) else item
