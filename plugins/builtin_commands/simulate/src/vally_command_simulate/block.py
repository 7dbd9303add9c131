"""A simulation block as YAML that every reader understands the same way, or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

# What YAML does not allow, takes for a line break, or what reorders text on a terminal.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_UNFIT = re.compile("[\x00-\x09\x0b-\x1f]|" + _ESCAPED.pattern)


def json_block(overrides: Sequence[dict[str, Any]]) -> str:
    """The block as a JSON document."""
    return json.dumps({"simulation": {"tool_overrides": list(overrides)}}, ensure_ascii=False, indent=2) + "\n"


def yaml_block(overrides: Sequence[dict[str, Any]]) -> str:
    """The block as YAML: values are JSON, which YAML is, except texts of several lines, which stand as they are."""
    return "".join(f"{line}\n" for line in _lines(overrides))


def _lines(overrides: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "simulation:"
    yield "  tool_overrides:"
    for override in overrides:
        lead = "    - "
        for key, value in override.items():
            yield from _entry(lead + key, value)
            lead = "      "


def _entry(head: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str) or not _stands_as_it_is(value):
        yield f"{head}: {_scalar(value)}"
        return
    yield f"{head}: |{'' if value.endswith(chr(10)) else '-'}"
    yield from (f"        {line}" if line else "" for line in value.removesuffix("\n").split("\n"))


def _stands_as_it_is(text: str) -> bool:
    """Whether a text can be a literal block: several lines, the first neither empty nor indented, one end at most."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and lines[0][:1] not in ("", " ") and lines[-1] != "" and not _UNFIT.search(text)


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
