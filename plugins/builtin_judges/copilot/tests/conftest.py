"""Questions to the judge: the real runtime, a model server whose answers stand in the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from judge_questions import KEY

from vally.testing import MockLlm, run_context
from vally_judge_copilot.judge import CopilotJudge


@pytest.fixture
def llm() -> Iterator[MockLlm]:
    with MockLlm(api_key=KEY) as server:
        yield server


@pytest.fixture
def make_judge(tmp_path: Path) -> Callable[..., CopilotJudge]:
    """A judge that knows a run; keyword arguments are variables of its process."""

    def make(**variables: Any) -> CopilotJudge:
        env = {
            "COPILOT_CLI_PATH": str(agents.copilot_runtime()),
            "COPILOT_SKIP_CLI_DOWNLOAD": "1",
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
        }
        judge = CopilotJudge()
        judge.prepare(run_context(tmp_path, process_env={**env, **variables}))
        return judge

    return make
