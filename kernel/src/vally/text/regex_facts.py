"""What is certain about a pattern before it meets any text: that it matches every text, or none."""

from __future__ import annotations

import re
from functools import lru_cache

from vally.errors import VallyError
from vally.text.regex import compile_regex
from vally.text.regex_syntax import (
    Assertion,
    Character,
    Choice,
    Look,
    Node,
    Reference,
    Repeat,
    Sequence,
    UnknownSyntax,
    parse,
)

_SAMPLES = ("", "a", " ", "\n", "0\n-\n", "the quick brown fox", "é\u2028")
_FLAGS = re.compile(r"^\(\?[ims]+\)")
_MULTILINE_GROUP = re.compile(r"\(\?[a-z]*m")
# How often an iteration is followed before it is assumed that nothing new happens.
_ROUNDS = 3

Conditions = frozenset[frozenset[str]]
_NONE: Conditions = frozenset()
_ALWAYS: Conditions = frozenset({frozenset()})

# (whether anything was consumed since the match began, whether the end of the text was asserted)
State = tuple[bool, bool]
States = frozenset[State]
_BEGIN: States = frozenset({(False, False)})


# Most patterns need no look at their structure: without one of these nothing is impossible, ...
_MAY_FAIL = re.compile(r"[\^$]|\[\]|\(\?<?!")
# ... and what begins with a character that must be there, or has nothing optional, is not empty.
_NOT_EMPTY = re.compile(r"[\w ,:;/<>\"'=-](?![*?{])[^|]*|[^*?{^$|(]*", re.DOTALL)


@lru_cache(maxsize=1024)
def matches_every_text(pattern: str) -> bool:
    """Whether a search for the pattern succeeds in every text, the empty one included. False when not certain."""
    if _NOT_EMPTY.fullmatch(_FLAGS.sub("", pattern, count=1)):
        return False
    node = _parsed(pattern)
    if node is None or not any(condition <= {"start"} or condition <= {"end"} for condition in _empty(node)):
        return False
    return all(_found(pattern, text) for text in _SAMPLES)


@lru_cache(maxsize=1024)
def matches_no_text(pattern: str) -> bool:
    """Whether a search for the pattern fails in every text. False when not certain."""
    if not _MAY_FAIL.search(pattern):
        return False
    node = _parsed(pattern)
    if node is None or _after(node, _BEGIN, _is_multiline(pattern)):
        return False
    return not any(_found(pattern, text) for text in (*_SAMPLES, pattern))


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> Node | None:
    try:
        return parse(compile_regex(pattern).source)
    except (UnknownSyntax, RecursionError, VallyError):
        return None


def _is_multiline(pattern: str) -> bool:
    # Groups may switch the flag too; what is not certain is not claimed.
    return "m" in compile_regex(pattern).flags or _MULTILINE_GROUP.search(pattern) is not None


def _found(pattern: str, text: str) -> bool:
    try:
        return compile_regex(pattern).search(text, time_limit=0.2) is not None
    except VallyError:
        return False


def _empty(node: Node) -> Conditions:
    """Sets of conditions on the position, `start` and `end`, each of which suffices for an empty match there."""
    match node:
        case Assertion(kind):
            return _NONE if kind == "other" else frozenset({frozenset({kind})})
        case Sequence(items):
            found = _ALWAYS
            for item in items:
                found = frozenset(one | other for one in found for other in _empty(item))
            return found
        case Choice(options):
            return frozenset().union(*map(_empty, options))
        case Repeat(body, least, _):
            return _ALWAYS if least == 0 else _empty(body)
        case Look(body, _, negative):
            if negative:
                return _ALWAYS if _is_impossible(body) else _NONE
            return _empty(body)
        case Character() | Reference():
            return _NONE


def _is_impossible(node: Node) -> bool:
    """Whether a part cannot match wherever it stands; anchors are taken as holding."""
    match node:
        case Character(impossible):
            return impossible
        case Sequence(items):
            return any(map(_is_impossible, items))
        case Choice(options):
            return all(map(_is_impossible, options))
        case Repeat(body, least, _):
            return least > 0 and _is_impossible(body)
        case Look(body, _, negative):
            return frozenset() in _empty(body) if negative else _is_impossible(body)
        case Assertion() | Reference():
            return False


def _after(node: Node, states: States, multiline: bool) -> States:
    """The states in which matching can be after a part; none when it cannot match."""
    match node:
        case Character(impossible):
            return frozenset() if impossible else frozenset({(True, False) for _, ended in states if not ended})
        case Assertion(kind):
            if multiline or kind == "other":
                return states
            if kind == "start":
                return frozenset(state for state in states if not state[0])
            return frozenset((consumed, True) for consumed, _ in states)
        case Reference():
            return states | {(True, False) for _, ended in states if not ended}
        case Sequence(items):
            for item in items:
                states = _after(item, states, multiline)
            return states
        case Choice(options):
            return frozenset().union(*(_after(option, states, multiline) for option in options))
        case Repeat(body, least, most):
            return _repeated(body, least, most, states, multiline)
        case Look(body, behind, negative):
            if negative:
                return frozenset() if frozenset() in _empty(body) else states
            if behind:
                return states
            return frozenset(state for state in states if _after(body, frozenset({state}), multiline))


def _repeated(body: Node, least: int, most: int | None, states: States, multiline: bool) -> States:
    for _ in range(min(least, _ROUNDS)):
        states = _after(body, states, multiline)
    found = states
    for _ in range(_ROUNDS if most is None else min(most - min(least, _ROUNDS), _ROUNDS)):
        states = _after(body, states, multiline)
        found |= states
    return found
