"""The examples by which the behaviour of graders is specified, each of which is a test case with that id.

Per family of examples: how many there are (their numbers begin with 1), and the distribution that they are about. When
that one is left out of a checkout, so are its examples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT

KERNEL = "kernel"
GRADERS = "plugins/builtin_graders"


@dataclass(frozen=True)
class Family:
    """`count` examples about the distribution in the folder `place`."""

    count: int
    place: str

    def ids(self, prefix: str) -> list[str]:
        return [f"{prefix}-{number}" for number in range(1, self.count + 1)]


GRADER_EXAMPLES = {
    "NM": Family(6, KERNEL),
    "RX": Family(10, KERNEL),
    "VD": Family(10, KERNEL),
    "OC": Family(8, f"{GRADERS}/output"),
    "OM": Family(6, f"{GRADERS}/output"),
    "TC": Family(6, f"{GRADERS}/output"),
    "TM": Family(5, f"{GRADERS}/output"),
    "AT": Family(6, f"{GRADERS}/output"),
    "FE": Family(8, f"{GRADERS}/files"),
    "FC": Family(8, f"{GRADERS}/files"),
    "FM": Family(7, f"{GRADERS}/files"),
    "DC": Family(8, f"{GRADERS}/diff"),
    "DE": Family(6, f"{GRADERS}/diff"),
    "TL": Family(12, f"{GRADERS}/tool_calls"),
    "SK": Family(6, f"{GRADERS}/tool_calls"),
    "SE": Family(5, f"{GRADERS}/tool_calls"),
    "RC": Family(8, f"{GRADERS}/process"),
    "PG": Family(8, f"{GRADERS}/process"),
    "CP": Family(6, f"{GRADERS}/completion"),
    "MT": Family(9, f"{GRADERS}/metrics"),
    "CM": Family(7, f"{GRADERS}/metrics"),
    "MR": Family(8, f"{GRADERS}/loops"),
    "LO": Family(6, f"{GRADERS}/loops"),
    "PR": Family(9, f"{GRADERS}/prompt"),
    "PN": Family(7, f"{GRADERS}/panel"),
    "CO": Family(6, f"{GRADERS}/prompt"),
    "CT": Family(4, KERNEL),
    "OR": Family(6, KERNEL),
    "JS": Family(2, f"{GRADERS}/json"),
    "JP": Family(3, f"{GRADERS}/json"),
}


def expected_ids() -> dict[str, str]:
    """Every id, with the folder of the distribution that it is about, as far as that folder is there."""
    families = {prefix: family for prefix, family in GRADER_EXAMPLES.items() if (ROOT / family.place).is_dir()}
    return {id_: family.place for prefix, family in families.items() for id_ in family.ids(prefix)}


def ids_with_a_case(place: str) -> set[str]:
    """The ids that have a test case among the tests of a distribution, those across distributions, and the kernel's."""
    folders = dict.fromkeys([ROOT / place / "tests", ROOT / KERNEL / "tests", ROOT / "tests" / "end_to_end"])
    return {id_ for folder in folders for path in folder.rglob("test_*.py") for id_ in ids_in(path)}


def ids_in(path: Path) -> Iterator[str]:
    """The ids with which a text of the tests begins: the id of a case, perhaps with a suffix, or a test's docstring."""
    for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
        found = re.match(r"[A-Z]{2}-[0-9]+(?![0-9A-Za-z])", text)
        if found is not None:
            yield found[0]


def _texts(tree: ast.Module) -> Iterable[str]:
    docstrings = {id(_docstring(node)) for node in ast.walk(tree) if not _is_test(node)} - {id(None)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def _docstring(node: ast.AST) -> ast.Constant | None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return None
    first = node.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first.value if is_text else None  # type: ignore[attr-defined,return-value]
