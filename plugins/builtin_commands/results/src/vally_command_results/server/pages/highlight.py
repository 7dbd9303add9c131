"""Syntax colours of diffs: classes around pieces of lines, found by Pygments within limits of size and time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup, escape

SECONDS = 0.4
HUNK_LENGTH = 20_000
LINE_LENGTH = 400
LEXERS = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cs": "csharp", ".css": "css", ".go": "go", ".h": "c", ".hpp": "cpp",
    ".html": "html", ".ini": "ini", ".java": "java", ".js": "javascript", ".json": "json", ".jsx": "javascript",
    ".kt": "kotlin", ".lua": "lua", ".md": "markdown", ".mjs": "javascript", ".php": "php", ".ps1": "powershell",
    ".py": "python", ".pyi": "python", ".rb": "ruby", ".rs": "rust", ".scss": "scss", ".sh": "bash", ".sql": "sql",
    ".swift": "swift", ".toml": "toml", ".ts": "typescript", ".tsx": "typescript", ".xml": "xml", ".yaml": "yaml",
    ".yml": "yaml",
}  # fmt: skip
_NAMES = {"Dockerfile": "docker", "Makefile": "make"}
# The first that a token lies in counts.
_CLASSES = (
    ("Comment", "tok-comment"),
    ("Literal.String", "tok-string"),
    ("Literal.Number", "tok-number"),
    ("Keyword", "tok-keyword"),
    ("Operator.Word", "tok-keyword"),
    ("Name.Tag", "tok-name"),
    ("Name.Function", "tok-name"),
    ("Name.Class", "tok-name"),
    ("Name.Decorator", "tok-name"),
    ("Name.Attribute", "tok-attribute"),
    ("Name.Builtin", "tok-attribute"),
)


@dataclass(slots=True)
class Budget:
    """The time that is left for one page; what comes later stays plain."""

    end: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    @property
    def is_spent(self) -> bool:
        """Whether none is left."""
        return time.monotonic() > self.end


def highlighted(path: str, lines: Sequence[tuple[str, str]], budget: Budget) -> list[Markup | None]:
    """For each (kind, text) of a file's diff the text with classes; None where it stays plain."""
    found: list[Markup | None] = [None] * len(lines)
    lexer = _lexer(path)
    if lexer is None:
        return found
    for hunk in _hunks(lines):
        # Both sides of a hunk are texts of their own; lines on both are coloured as the new side has them.
        for side in ("del", "add"):
            places = [place for place in hunk if lines[place][0] in (side, "same")]
            if budget.is_spent:
                return found
            for place, text in zip(places, _painted([lines[place][1] for place in places], lexer, budget), strict=True):
                found[place] = text
    return found


def _hunks(lines: Sequence[tuple[str, str]]) -> Iterator[list[int]]:
    current: list[int] = []
    for place, (kind, _) in enumerate(lines):
        if kind == "hunk":
            yield current
            current = []
        elif kind in ("add", "del", "same"):
            current.append(place)
    yield current


def _lexer(path: str) -> Any:
    file = PurePosixPath(path)
    alias = LEXERS.get(file.suffix.lower()) or _NAMES.get(file.name)
    if alias is None:
        return None
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # Pygments has no types

    return get_lexer_by_name(alias, stripnl=False, ensurenl=False)


def _painted(texts: Sequence[str], lexer: Any, budget: Budget) -> list[Markup | None]:
    plain: list[Markup | None] = [None] * len(texts)
    whole = "\n".join(texts)
    if not whole or len(whole) > HUNK_LENGTH or any(len(text) > LINE_LENGTH for text in texts):
        return plain
    lines: list[list[str]] = [[]]
    for _, token, value in lexer.get_tokens_unprocessed(whole):
        if budget.is_spent:
            return plain
        kind = _class(token)
        for place, piece in enumerate(value.split("\n")):
            if place:
                lines.append([])
            if piece:
                lines[-1].append(f'<span class="{kind}">{escape(piece)}</span>' if kind else str(escape(piece)))
    if len(lines) != len(texts):
        return plain
    return [Markup("".join(pieces)) for pieces in lines]


def _class(token: Any) -> str:
    path = str(token).removeprefix("Token.")
    return next((kind for prefix, kind in _CLASSES if path == prefix or path.startswith(f"{prefix}.")), "")
