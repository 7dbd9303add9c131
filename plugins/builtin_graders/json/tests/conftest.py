"""What the tests of both keywords share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid, GraderResult, GraderSpec, PluginHost
from vally.testing import grade, trajectory
from vally_grader_json import plugin

RECORDS: dict[str, GraderSpec] = {record.name: record for record in plugin.vally_graders()}
Grade = Callable[..., GraderResult]
Problem = Callable[..., str]


@pytest.fixture
def grade_output() -> Grade:
    """The result for an answer."""

    def graded(keyword: str, config: dict[str, Any], output: str, **facts: Any) -> GraderResult:
        return grade(RECORDS[keyword], config, trajectory(output=output), **facts)

    return graded


@pytest.fixture
def grade_file(tmp_path: Path) -> Grade:
    """The result for `out.json` in the workspace; None leaves it out."""

    def graded(keyword: str, config: dict[str, Any], content: str | bytes | None) -> GraderResult:
        work = tmp_path / "work"
        work.mkdir()
        if content is not None:
            (work / "out.json").write_bytes(content.encode() if isinstance(content, str) else content)
        return grade(RECORDS[keyword], {"path": "out.json", **config}, trajectory(work_dir=str(work)))

    return graded


@pytest.fixture
def problem() -> Problem:
    """Why a config is refused."""

    def refused(keyword: str, config: dict[str, Any], **options: Any) -> str:
        with pytest.raises(ConfigInvalid) as caught:
            PluginHost.from_objects(plugin).parse_config(RECORDS[keyword], config, **options)
        assert str(caught.value).startswith(f"Invalid config for {keyword}: ")
        return caught.value.problems[0]

    return refused
