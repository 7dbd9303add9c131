"""Paths of named environments that were meant relative to the specs that use them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally_command_scaffold.documents import Shared, SpecFile
from vally_command_scaffold.yaml_text import Edit, Node, Unparsable, YamlText, apply_edits, is_placeholder

if TYPE_CHECKING:
    from vally import Diagnostic

CODE = "legacy-path-base"


def rebase_paths(text: str, shared: Shared, specs: Iterable[Path]) -> tuple[str, int, list[Diagnostic]]:
    """Write such paths relative to the project file; `specs` are the specs that may use them.

    Returns the text, how many paths changed, and the findings about paths that mean different things in different
    specs.
    """
    found = list(_findings(shared, specs))
    if not found:
        return text, 0, []
    try:
        source = YamlText(text)
    except Unparsable:
        return text, 0, [item for item, _ in found]
    scalars = {node.start: node for node in _scalars(source.root)}
    edits: dict[int, Edit] = {}
    left = []
    for offset in sorted({source.offset(item.line or 1, item.column or 1) for item, _ in found}):
        node = scalars.get(offset)
        here = [(item, spec) for item, spec in found if source.offset(item.line or 1, item.column or 1) == offset]
        targets = (
            set() if node is None else {_rebased(node.value, spec.parent, shared.project.root) for _, spec in here}
        )
        if node is None or len(targets) != 1 or is_placeholder(node.value):
            left.append(here[0][0])
        else:
            quote = 1 if node.style in ("'", '"') else 0
            edits[offset] = Edit(node.body + quote, node.end - quote, targets.pop())
    return apply_edits(text, list(edits.values())), len(edits), left


def _findings(shared: Shared, specs: Iterable[Path]) -> Iterator[tuple[Diagnostic, Path]]:
    from vally import read_eval_spec

    for path in specs:
        loaded = read_eval_spec(path, project=shared.project, host=shared.host, environ=shared.environ, lint=True)
        yield from ((item, path) for item in loaded.diagnostics if item.code == CODE)


def _rebased(written: str, base: Path, root: Path) -> str:
    relative = Path(os.path.relpath(base / written, root)).as_posix()
    return f"{relative}/" if written.endswith("/") else relative


def _scalars(node: Node | None) -> Iterator[Node]:
    if node is None:
        return
    if node.kind == "scalar":
        yield node
    for item in node.items:
        yield from _scalars(item)
    for _, value in node.entries:
        yield from _scalars(value)


def same_plans(before: Shared, after: Shared, specs: Iterable[Path]) -> bool:
    """Whether specs mean the same with another project."""
    pairs = ((SpecFile(path, before), SpecFile(path, after), path.read_bytes()) for path in specs)
    return all(old.read(content).plan == new.read(content).plan for old, new, content in pairs)


def with_project(shared: Shared, content: bytes) -> Shared:
    """The same with another content of the project file."""
    from vally import read_project

    assert shared.project.path is not None
    return replace(shared, project=read_project(shared.project.path, content=content))
