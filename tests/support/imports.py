"""Which modules a source file imports, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """``import module`` (name is None) or ``from module import name``."""

    module: str
    name: str | None
    where: str

    @property
    def top(self) -> str:
        return self.module.split(".")[0]


def imports(path: Path) -> Iterator[Import]:
    """Every absolute import of the file, also inside functions, but not those for type checkers only."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in _runtime_nodes(tree):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (Import(node.module or "", alias.name, where) for alias in node.names)


def string_literals(path: Path) -> Iterator[tuple[str, str]]:
    """(text, where) of every string literal that is not a docstring; pieces of f-strings included."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value, f"{path}:{node.lineno}"


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
        children: list[ast.AST] = list(node.orelse)
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _runtime_nodes(child)
