"""The judge keeps the contract of judges, with the real runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from vally import ProviderConfig
from vally.testing import Case, MockLlm, ModelReply, judge_contract
from vally_judge_copilot.judge import CopilotJudge

MAKERS: list[Callable[[], CopilotJudge]] = []


@contextmanager
def serve(_: Sequence[ModelReply]) -> Iterator[ProviderConfig]:
    with MockLlm() as server:
        yield ProviderConfig(type="openai", base_url=f"{server.url}/v1", api_key_env="CONTRACT_API_KEY")


@pytest.fixture
def make(make_judge: Callable[[], CopilotJudge]) -> Iterator[None]:
    MAKERS.append(make_judge)
    yield
    MAKERS.pop()


@pytest.mark.heavy
@pytest.mark.usefixtures("make")
@pytest.mark.parametrize("case", judge_contract(lambda: MAKERS[-1](), serve))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
