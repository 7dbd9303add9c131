"""The YAML 1.2 core schema for scalars."""

from __future__ import annotations

import math
import re
from typing import Final

from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_INTEGER: Final = 2**53 - 1
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+])?\.(?:inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
# A number starts with one of these; most plain scalars are words, which need no further look.
_NUMERIC = frozenset("0123456789+-.")
# Longer integers are beyond every limit, and Python refuses to convert very long ones.
_MAX_DIGITS = 40

Plain = None | bool | int | float | str


def resolve(text: str) -> Plain:
    """The value of a plain scalar; an integer that is too large to be exact is an infinity."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite[1] == "-" else math.inf
    return math.nan if text in _NAN else text


def _integer(text: str) -> int | float:
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        return math.inf
    value = int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)
    return value if abs(value) <= MAX_INTEGER else math.inf


def scalar_value(node: ScalarNode) -> Plain:
    """The value of a scalar by its style and tag. A filled placeholder that leaves nothing is the empty string."""
    if node.tag == "str" or (node.style and node.tag is None):
        return node.text
    if node.original is not None and not node.text:
        return ""
    value = resolve(node.text)
    if node.tag == "float" and type(value) is int:
        return float(value)
    return value


def fits_tag(node: ScalarNode) -> bool:
    """Whether the text of a scalar is a value of its explicit tag."""
    value = resolve(node.text)
    match node.tag:
        case "null":
            return value is None
        case "bool":
            return isinstance(value, bool)
        case "int":
            return bool(_INTEGER.fullmatch(node.text))
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "map" | "seq":
            return False
    return True


def is_null(node: Node | None) -> bool:
    """Whether a node is absent or null."""
    if node is None:
        return True
    if not isinstance(node, ScalarNode) or node.unresolved or node.style:
        return False
    if node.tag is None and node.original is None:
        return node.text in _NULL
    return scalar_value(node) is None


def describe(node: Node) -> str:
    """A value as messages quote it."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    assert isinstance(node, ScalarNode)
    value = scalar_value(node)
    if isinstance(value, str):
        return f"'{shown(node)}'"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    # As it is written: 3.0 is no integer, which "3" would not tell.
    return shown(node)


def shown(node: ScalarNode) -> str:
    """The text of a scalar as messages and records may show it."""
    return node.text if node.written is None else node.written
