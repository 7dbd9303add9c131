"""The JSON file into which a run writes metrics of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from vally import Matches, ReadRoot, UnreadableFile, VallyError

MAX_BYTES = 2**20


class InvalidMetricsFile(VallyError):
    """The file is there but does not hold metrics; the text says why."""


def read_metrics(files: ReadRoot, matches: Matches) -> Mapping[str, Any]:
    """Metrics by name, from the first match; raises InvalidMetricsFile."""
    if not matches.files():
        raise InvalidMetricsFile("it is a directory")
    try:
        text = files.read_text(matches, matches.paths[0], limit=MAX_BYTES)
    except UnreadableFile as error:
        raise InvalidMetricsFile("it is over 1 MiB" if error.reason == "too large" else error.reason) from None
    return parse_metrics(text)


def parse_metrics(text: str) -> Mapping[str, Any]:
    """Metrics by name: those under `values` when that is an object, else the whole; raises InvalidMetricsFile."""
    try:
        document = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InvalidMetricsFile(f"it is not JSON (line {error.lineno} column {error.colno}: {error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise InvalidMetricsFile(f"it is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise InvalidMetricsFile("it is not a JSON object")
    values = document.get("values")
    return values if isinstance(values, dict) else document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
