"""What a shell offers for runs and their trials."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally.testing import CliResult

Vally = Callable[..., CliResult]
WriteRun = Callable[..., Path]


def offered(vally: Vally, line: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split())), "COMP_LINE": line, "COMP_POINT": str(len(line))}
    result = vally(env={"_VALLY_COMPLETE": "bash_complete", **words})
    assert (result.exit_code, result.stderr) == (0, "")
    return [row.split("\t")[1] for row in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("vally show ", ["vally-results/2026-01-02T03-04-05-678Z", "latest"]),
        ("vally rejudge ", ["vally-results/2026-01-02T03-04-05-678Z", "latest"]),
        ("vally show latest --stimulus ", ["greets"]),
        ("vally show --stimulus ", ["greets"]),
        ("vally show latest --trial ", ["0", "1", "2"]),
        ("vally show latest --model ", ["default-model"]),
        ("vally show latest --variant ", ["main"]),
        ("vally show nowhere --stimulus ", []),
    ],
)
def test_runs_and_trials(line: str, values: list[str], write_run: WriteRun, make: Any, vally: Vally) -> None:
    write_run(*make.three_trials())
    assert offered(vally, line) == values
