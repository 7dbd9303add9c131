"""Runs told to the reporter, and the file it writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult, TrialResult
from vally.testing import ScriptedRun
from vally_reporter_junit.reporter import JunitReporter


@dataclass(frozen=True)
class Report:
    """The file as text and as a tree."""

    text: str

    @property
    def root(self) -> ElementTree.Element:
        return ElementTree.fromstring(self.text.encode())

    @property
    def suites(self) -> list[ElementTree.Element]:
        return self.root.findall("testsuite")

    @property
    def cases(self) -> list[ElementTree.Element]:
        return self.root.findall("testsuite/testcase")

    def suite_properties(self, index: int = 0) -> dict[str, str]:
        return properties(self.suites[index])


def properties(element: ElementTree.Element) -> dict[str, str]:
    return {item.attrib["name"]: item.attrib["value"] for item in element.findall("properties/property")}


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Report]:
    """Tell the reporter of a run with these results."""

    def reported(*results: TrialResult, **options: Any) -> Report:
        run = ScriptedRun(tmp_path, results, **options)
        played = run.play(JunitReporter())
        assert played.artifacts == {"JUnit": run.run_dir / "eval-results.junit.xml"}
        assert played.stdout == played.stderr == ""
        return Report(played.artifacts["JUnit"].read_bytes().decode("utf-8"))

    return reported


@pytest.fixture
def grader() -> Callable[..., GraderResult]:
    """A result of a grader with a display name."""

    def made(name: str, passed: bool | None = True, evidence: str = "as wanted", **fields: Any) -> GraderResult:
        if passed is None:
            return GraderResult.error(evidence, name=name, **fields)
        return GraderResult.verdict(passed, evidence, name=name, **fields)

    return made
