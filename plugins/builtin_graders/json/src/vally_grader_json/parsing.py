"""JSON texts as RFC 8259 has them, without the extensions of Python's parser."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from vally import VallyError

_FENCE = re.compile(r"[ \t]*(?:(?P<ticks>`{3,})(?P<info>[^`]*)|(?P<tildes>~{3,})(?P<about>.*))")


class InvalidJson(VallyError):
    """A text is not JSON; the message says why."""


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises `InvalidJson`, also for numbers beyond the range of a double."""
    try:
        return json.loads(
            text.removeprefix("\ufeff"), parse_constant=_refuse, parse_float=_finite, parse_int=_representable
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise InvalidJson(str(error)) from None
    except RecursionError:
        raise InvalidJson("it is nested too deeply") from None


def parse_answer(text: str) -> Any:
    """The value of an answer that is JSON, or whose first fenced block marked `json` is; raises `InvalidJson`."""
    try:
        return parse_json(text.strip())
    except InvalidJson:
        block = fenced_json(text)
        if block is None:
            raise
    return parse_json(block)


def fenced_json(text: str) -> str | None:
    """The content of the first fenced block marked `json`, in a list or not; None when there is none.

    An unclosed block goes to the end of the text.
    """
    # A CommonMark parser would take time quadratic in the number of blocks, and agents write megabytes.
    lines = iter(text.split("\n"))
    for line in lines:
        opening = _FENCE.fullmatch(line.rstrip("\r"))
        if opening is None:
            continue
        fence, info = opening["ticks"] or opening["tildes"], opening["info"] or opening["about"] or ""
        content = _until_closed(lines, fence)
        if info.split()[:1] and info.split()[0].lower() == "json":
            return "\n".join(content)
    return None


def _until_closed(lines: Any, fence: str) -> list[str]:
    content = []
    for line in lines:
        text = line.strip()
        if len(text) >= len(fence) and not text.strip(fence[0]):
            break
        content.append(line)
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {_shortened(text)} is out of range")
    return number


def _representable(text: str) -> int:
    # Longer ones are beyond every double, and costly to convert.
    if len(text) > 310:
        raise ValueError(f"the number {_shortened(text)} is out of range")
    number = int(text)
    _finite(text)
    return number


def _shortened(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}…"
