"""The examples of `docs/reference/diagnostics.md`: for every code a bad and a good one, each a folder of files.

Words of a block: `bad` or `good`, `at=<line>:<column>` or `at=file`, `with=<code>` for another code that cannot be
avoided, `experiment` or `file=<path>` for anything but the eval, `alone` for an eval without the usual stimuli,
`times=<n>` for how often its last line stands there, `size=` in bytes, `encoding=`, `copies=` of the usual eval.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from checkout import ROOT
from fences import Fence, fence_of
from markdown_it import MarkdownIt

PAGE = ROOT / "docs" / "reference" / "diagnostics.md"
EVAL = "evals/eval.yaml"
EXPERIMENT = "models.experiment.yaml"
ENTRY_LEVEL, CODE_LEVEL = "h2", "h3"


@dataclass
class Entry:
    """One code with its first paragraph and its blocks."""

    code: str
    line: int
    text: str = ""
    blocks: list[Fence] = field(default_factory=list)

    def block(self, kind: str) -> Fence:
        """The bad or the good block."""
        (found,) = [block for block in self.blocks if kind in block.words]
        return found

    @property
    def shared(self) -> list[Fence]:
        """Files that both examples have."""
        return [block for block in self.blocks if not {"bad", "good"} & set(block.words)]


@dataclass
class Page:
    """The page taken apart."""

    entries: list[Entry] = field(default_factory=list)
    files: list[Fence] = field(default_factory=list)
    rest: str = ""


def read_page() -> Page:
    """Entries by heading; blocks in front of them are the usual stimuli and files that all examples have."""
    page = Page()
    tokens = MarkdownIt().parse(PAGE.read_text(encoding="utf-8"))
    for token, inside in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open" and token.tag == CODE_LEVEL and token.map:
            page.entries.append(Entry(inside.content.strip("`"), token.map[0] + 1))
        elif token.type == "paragraph_open" and page.entries and not page.entries[-1].text:
            page.entries[-1].text = inside.content
        elif token.type == "fence":
            block = fence_of(PAGE, token)
            if page.entries:
                page.entries[-1].blocks.append(block)
            elif "rest" in block.words:
                page.rest = block.text
            else:
                page.files.append(block)
    return page


def option(block: Fence, name: str) -> str | None:
    """The value of `name=…`."""
    return next((word.split("=", 1)[1] for word in block.words if word.startswith(f"{name}=")), None)


def path_of(block: Fence) -> str:
    """The file that a block is."""
    return block.file or (EXPERIMENT if "experiment" in block.words else EVAL)


def build(page: Page, entry: Entry, kind: str, root: Path) -> None:
    """Write the files of one example."""
    (root / EVAL).parent.mkdir(parents=True)
    (root / EVAL).write_text(page.rest, encoding="utf-8")
    for block in (*page.files, *entry.shared, entry.block(kind)):
        if block.language != "console":
            _write(root / path_of(block), block, page.rest)


def _write(path: Path, block: Fence, rest: str) -> None:
    lines = block.text.splitlines(keepends=True)
    lines += lines[-1:] * (int(option(block, "times") or 1) - 1)
    is_eval = path_of(block) == EVAL
    if is_eval and "alone" not in block.words and not any(line.startswith("stimuli") for line in lines):
        lines.append(rest)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(lines).encode(option(block, "encoding") or "utf-8")
    path.write_bytes(content)
    with path.open("r+b") as file:
        file.truncate(int(option(block, "size") or len(content)))
    for number in range(int(option(block, "copies") or 0)):
        copy = path.parent / f"many/{number}/eval.yaml"
        copy.parent.mkdir(parents=True)
        copy.write_text(rest, encoding="utf-8")
