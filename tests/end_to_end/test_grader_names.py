"""Names of results: the entry's own, the default of its type, that of the result, and numbers for repeated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    GraderEntry,
    GraderInput,
    GraderResult,
    GraderSpec,
    GradingRequest,
    LocalProcessRunner,
    PluginHost,
    Stimulus,
    grade_entries,
    grade_trajectory,
)
from vally.testing import plugin_host, trajectory

EXISTS = {"type": "file-exists", "config": {"path": "a.txt"}}
CONTAINS = {"type": "output-contains", "config": {"substring": "a\tb  c\n"}}
MATCHES = {"type": "output-matches", "config": {"pattern": "x" * 100}}
HOST = PluginHost()


def names(work_dir: Path, entries: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    graded = grade_trajectory(trajectory(work_dir=str(work_dir)), entries, host=HOST)
    return [(result.name, result.configured_name) for result in graded.details or ()]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([EXISTS], [("file-exists a.txt", None)], id="NM-1"),
        pytest.param([{**EXISTS, "name": "readme-there"}], [("readme-there", "readme-there")], id="NM-2"),
        pytest.param(
            [EXISTS, EXISTS], [("file-exists a.txt #1", None), ("file-exists a.txt #2", None)], id="NM-3"
        ),
        pytest.param([CONTAINS], [("output-contains a b c", None)], id="NM-4"),
        pytest.param([MATCHES], [(f"output-matches {'x' * 44}…", None)], id="NM-5"),
        pytest.param(
            [EXISTS, CONTAINS, EXISTS, {**EXISTS, "name": "other"}],
            [
                ("file-exists a.txt #1", None),
                ("output-contains a b c", None),
                ("file-exists a.txt #2", None),
                ("other", "other"),
            ],
            id="only what repeats is numbered",
        ),
    ],
)  # fmt: skip
def test_names(tmp_path: Path, entries: list[dict[str, Any]], expected: list[tuple[str, str | None]]) -> None:
    assert names(tmp_path, entries) == expected


class Unnamed:
    """Its default name cannot be made."""

    def grade(self, input: GraderInput[Any]) -> GraderResult:
        return GraderResult.verdict(True, "fine", name="its own name")

    def default_name(self, config: Any) -> str:
        raise RuntimeError("no name")


@pytest.mark.parametrize("_", [pytest.param(None, id="NM-6")])
def test_a_default_name_that_fails(_: None, tmp_path: Path) -> None:
    warnings: list[str] = []
    record = GraderSpec(name="unnamed", summary="is fine", factory=Unnamed)
    host = plugin_host(record)
    graded = _graded_with_warnings(host, warnings, tmp_path)
    assert [result.name for result in graded.details or ()] == ["its own name"]
    assert warnings == ["default_name of grader 'unnamed' failed: RuntimeError: no name"]


def _graded_with_warnings(host: PluginHost, warnings: list[str], work_dir: Path) -> GraderResult:
    stimulus = Stimulus(name="s", prompt="p", turns=("p",), graders=(GraderEntry(type="unnamed"),))
    request = GradingRequest(
        trajectory=trajectory(),
        stimulus=stimulus,
        host=host,
        runner=LocalProcessRunner(trial_id="t", env={}),
        spec_dir=work_dir,
        on_warning=warnings.append,
    )
    result = anyio.run(grade_entries, request)
    assert result is not None
    return result
