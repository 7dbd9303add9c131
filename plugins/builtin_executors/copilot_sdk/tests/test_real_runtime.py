"""What the real runtime does in a trial."""

from __future__ import annotations

import pytest

from vally.testing import MockLlm

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

SCRIPT = """Please do it.
!tool create {"path": "%s/hello.txt", "file_text": "hello\\n"}
!tool bash {"command": "cat hello.txt; exit 3", "description": "look"}
!say finished
"""


async def test_tools_write_files_and_run_commands(run, llm: MockLlm) -> None:
    trajectory = await run(SCRIPT % run.work)
    print([(e.type, e.data) for e in trajectory.events])
    print(trajectory.metadata, trajectory.metrics)
    assert (run.work / "hello.txt").read_text() == "hello\n"
    assert trajectory.output == "finished"
