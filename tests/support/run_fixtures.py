"""Fixtures of stored runs made by hand, and of the program that looks at them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import Make, RunWriter

from vally.testing import CliResult, run_cli


@pytest.fixture
def make() -> Make:
    """Results, grades and summaries of runs that never happened."""
    return Make()


@pytest.fixture
def write_run(tmp_path: Path) -> RunWriter:
    """Write a run directory below `vally-results`."""
    return RunWriter(tmp_path)


@pytest.fixture
def vally(tmp_path: Path) -> Callable[..., CliResult]:
    """Run the program in the directory above `vally-results`; nothing may end in a traceback."""

    def run(*args: str, env: dict[str, str] | None = None) -> CliResult:
        result = run_cli(args, cwd=tmp_path, env=env)
        assert "Traceback" not in result.stderr
        assert "internal error" not in result.stderr
        return result

    return run
