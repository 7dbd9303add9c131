"""Fenced code blocks of the documentation, and the folder their examples make together.

The words after the language say what a block is for: `eval`, `project`, `graders`, `run`, `file=<path>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT
from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Fence:
    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def file(self) -> str | None:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(page: Path) -> Iterator[Fence]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            yield fence_of(page, token)


def fence_of(page: Path, token: Token) -> Fence:
    """The block of a token of Markdown."""
    assert token.map is not None
    language, *words = token.info.split() or [""]
    return Fence(page, token.map[0] + 1, language, tuple(words), token.content)


def all_fences(language: str, word: str | None = None) -> list[Fence]:
    found = [fence for page in pages() for fence in fences(page) if fence.language == language]
    return [fence for fence in found if word is None or word in fence.words]


def write_files(page: Path, folder: Path) -> None:
    """Write every block of the page that names a file."""
    for fence in fences(page):
        if fence.file is not None:
            target = folder / fence.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fence.text, encoding="utf-8")


def documented(page: Path) -> set[str]:
    """What has an entry on the page: code in headings and in the first cells of table rows."""
    entries: set[str] = set()
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    for row, cell, token in zip(tokens, tokens[1:], tokens[2:], strict=False):
        heading = cell.type == "heading_open"
        first_cell = row.type == "tr_open" and cell.type == "td_open"
        if token.type == "inline" and (heading or first_cell):
            entries |= {child.content for child in token.children or [] if child.type == "code_inline"}
    return entries
