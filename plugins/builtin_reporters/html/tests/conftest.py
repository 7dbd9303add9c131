"""Runs told to the reporter, and the file it writes, read as a browser would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import ScriptedRun
from vally_reporter_html.reporter import HtmlReporter

VOID = {"meta", "br", "input", "link", "img", "hr"}


@dataclass
class Element:
    """A start tag and the text inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    path: tuple[str, ...] = ()


@dataclass
class Browser(HTMLParser):
    """Reads a page; every tag must be closed where it should be."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {key: value or "" for key, value in attrs}, path=tuple(e.tag for e in self.open))
        assert len(made.attributes) == len(attrs), f"an attribute of <{tag}> twice"
        self.elements.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        last = self.open.pop()
        assert last.tag == tag, f"</{tag}> closes <{last.tag}>"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


@dataclass(frozen=True)
class Report:
    """The file as text and as elements."""

    text: str
    elements: list[Element]

    def all(self, tag: str, kind: str = "") -> list[Element]:
        """Elements of a tag, and of a class when one is given."""
        return [
            e for e in self.elements if e.tag == tag and (not kind or kind in e.attributes.get("class", "").split())
        ]

    def one(self, tag: str, kind: str = "") -> Element:
        (found,) = self.all(tag, kind)
        return found

    def words(self, tag: str, kind: str = "") -> list[str]:
        """Their texts with single blanks."""
        return [" ".join(e.text.split()) for e in self.all(tag, kind)]


def read(text: str) -> Report:
    browser = Browser()
    browser.feed(text)
    browser.close()
    assert not browser.open
    return Report(text, browser.elements)


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Report]:
    """Tell the reporter of a run with these results."""

    def reported(*results: TrialResult, **options: Any) -> Report:
        run = ScriptedRun(tmp_path, results, **options)
        played = run.play(HtmlReporter())
        assert played.artifacts == {"HTML": run.run_dir / "eval-results.html"}
        assert played.stdout == played.stderr == ""
        return read(played.artifacts["HTML"].read_bytes().decode("utf-8"))

    return reported


@pytest.fixture
def grader() -> Callable[..., GraderResult]:
    """A result of a grader with a display name."""

    def made(name: str, passed: bool | None = True, evidence: str = "as wanted", **fields: Any) -> GraderResult:
        if passed is None:
            return GraderResult.error(evidence, name=name, **fields)
        return GraderResult.verdict(passed, evidence, name=name, **fields)

    return made
