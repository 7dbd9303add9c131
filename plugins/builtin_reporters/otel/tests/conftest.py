"""Runs told to the reporter, and the spans that it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from vally import TrialResult
from vally.testing import ScriptedRun
from vally_reporter_otel.reporter import OtelReporter


@dataclass(frozen=True)
class Span:
    """A span of a file, with plain attributes and times in milliseconds since the first span."""

    name: str
    id: str
    parent: str
    trace: str
    kind: int
    start: float
    end: float
    failed: bool
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Spans:
    """What was written, line by line."""

    lines: list[dict[str, Any]]
    text: str
    stderr: str = ""
    all: list[Span] = field(default_factory=list)

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.all if span.name == name]
        return found

    def below(self, parent: Span) -> list[str]:
        return [span.name for span in self.all if span.parent == parent.id]


def plain(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    return int(inner) if kind == "intValue" else inner


def spans_of(text: str, stderr: str = "") -> Spans:
    lines = [json.loads(line) for line in text.splitlines()]
    raw = [s for line in lines for r in line["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
    first = min((int(item["startTimeUnixNano"]) for item in raw), default=0)
    found = [
        Span(
            name=item["name"],
            id=item["spanId"],
            parent=item.get("parentSpanId", ""),
            trace=item["traceId"],
            kind=item["kind"],
            start=(int(item["startTimeUnixNano"]) - first) / 1e6,
            end=(int(item["endTimeUnixNano"]) - first) / 1e6,
            failed=item.get("status", {}).get("code") == 2,
            attributes={entry["key"]: plain(entry["value"]) for entry in item.get("attributes", [])},
        )
        for item in raw
    ]
    return Spans(lines, text, stderr, found)


@pytest.fixture
def spans(tmp_path: Path) -> Callable[..., Spans]:
    """Tell the reporter of a run with these results."""

    def told(*results: TrialResult, **options: Any) -> Spans:
        run = ScriptedRun(tmp_path, results, **options)
        played = run.play(OtelReporter())
        path = run.run_dir / "otel-spans.jsonl"
        assert played.stdout == ""
        assert played.artifacts == ({"Spans": path} if path.exists() else {})
        return spans_of(path.read_text(encoding="utf-8") if path.exists() else "", played.stderr)

    return told
