"""What graders say of an untouched workspace and an empty trajectory, and whether they are meant to pass there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import PluginHost, grade_trajectory
from vally.testing import trajectory

HOST = PluginHost()


def report(entry: dict[str, Any], work_dir: Path) -> str:
    graded = grade_trajectory(trajectory(work_dir=str(work_dir), diff=""), [entry], host=HOST)
    (result,) = graded.details or ()
    assert result.status is None, result.evidence
    if not result.passed:
        return "as expected"
    record = HOST.require("grader", entry["type"])
    absence = getattr(HOST.create(record), "asserts_absence", lambda _: False)
    return "n/a" if absence(HOST.parse_config(record, entry.get("config"))) else "trivially passing"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"type": "tool-calls", "config": {"disallowed": ["rm"]}}, "n/a", id="OR-1"),
        pytest.param({"type": "output-contains", "config": {"substring": "ok"}}, "as expected", id="OR-2"),
        pytest.param({"type": "file-not-exists", "config": {"path": "bad.txt"}}, "trivially passing", id="OR-3"),
        pytest.param({"type": "transcript-not-contains", "config": {"substring": "x"}}, "as expected", id="OR-4"),
        pytest.param({"type": "diff-empty"}, "trivially passing", id="OR-5"),
        pytest.param(
            {"type": "tool-calls", "config": {"disallowed": ["rm"]}, "scope": "reviewer"}, "n/a", id="OR-6"
        ),
        ({"type": "max-repeat", "config": {"max": 1}}, "n/a"),
        ({"type": "json-path", "config": {"query": "$.x", "exists": False}}, "as expected"),
        ({"type": "json-schema", "config": {"schema": {}, "path": "a.json"}}, "as expected"),
    ],
)  # fmt: skip
def test_the_untouched_baseline(entry: dict[str, Any], expected: str, tmp_path: Path) -> None:
    assert report(entry, tmp_path) == expected
