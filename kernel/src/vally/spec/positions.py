"""From the words of a config problem to the place in the file that it is about."""

from __future__ import annotations

import re

from vally.spec.diagnostics import Place
from vally.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode

_UNKNOWN = re.compile(r"unknown key '([^']*)'")
_QUOTED = re.compile(r"'([^']*)' ")
# How a bad pattern is worded; it names no key.
_INVALID_REGEX = "Invalid regex pattern: "
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def problem_key(problem: str) -> str | None:
    """The dotted key that a problem starts with, or None."""
    match = _UNKNOWN.match(problem) or _QUOTED.match(problem)
    return match[1] if match else None


def problem_node(config: Node, place: Place, problem: str) -> tuple[Node, Place]:
    """The node a problem is about: the key when unknown, the value when wrong, else the mapping that lacks it."""
    key = problem_key(problem)
    if key is None:
        return _pattern(config, place, problem) or (config, place)
    found = _walk(config, place, key, to_key=_UNKNOWN.match(problem) is not None)
    return found if found is not None else (config, place)


def _pattern(node: Node, place: Place, problem: str) -> tuple[Node, Place] | None:
    """The scalar that an invalid regular expression stands in."""
    if isinstance(node, ScalarNode):
        return (node, place) if problem.startswith(f"{_INVALID_REGEX}{node.text}. Error: ") else None
    if not problem.startswith(_INVALID_REGEX):
        return None
    below: list[tuple[Node, Place]] = []
    if isinstance(node, SequenceNode):
        below = [(item, place.item(index)) for index, item in enumerate(node.items)]
    elif isinstance(node, MappingNode):
        below = [(value, place.key(key.text)) for key, value in node.entries]
    return next((found for child in below if (found := _pattern(*child, problem)) is not None), None)


def _walk(node: Node, place: Place, path: str, *, to_key: bool) -> tuple[Node, Place] | None:
    steps = list(_STEP.finditer(path))
    if isinstance(node, MappingNode) and (value := node.get(path)) is not None:
        # A key that has dots itself.
        return (node.key(path) if to_key else value) or value, place.key(path)
    for step in steps:
        if step[2] is not None:
            index = int(step[2])
            if not isinstance(node, SequenceNode) or index >= len(node.items):
                break
            node, place = node.items[index], place.item(index)
            continue
        value = node.get(step[1]) if isinstance(node, MappingNode) else None
        if value is None or not isinstance(node, MappingNode):
            break
        last = step is steps[-1]
        node, place = (node.key(step[1]) if to_key and last else value) or value, place.key(step[1])
    else:
        return node, place
    # What is missing is reported at the innermost mapping that lacks it.
    return node, place
