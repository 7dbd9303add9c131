"""The judge keeps the contract of judges over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from vally import ProviderConfig
from vally.testing import Case, MockLlm, ModelReply, judge_contract
from vally_judge_anthropic import plugin

(RECORD,) = plugin.vally_judges()


@contextmanager
def serve(_: Sequence[ModelReply]) -> Iterator[ProviderConfig]:
    with MockLlm() as server:
        yield ProviderConfig(type="anthropic", base_url=server.url, api_key_env="CONTRACT_API_KEY")


@pytest.mark.parametrize("case", judge_contract(RECORD, serve))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
