"""The judge keeps the contract of judges over real HTTP, in each way of asking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from vally import ProviderConfig
from vally.testing import Case, MockLlm, ModelReply, judge_contract
from vally_judge_openai import plugin

(RECORD,) = plugin.vally_judges()


class Served:
    """A provider of one kind in front of the mock model server."""

    def __init__(self, path: str = "/v1", **fields: Any) -> None:
        self._path = path
        self._fields = {"type": "openai", **fields}

    def __call__(self, _: Sequence[ModelReply]) -> AbstractContextManager[ProviderConfig]:
        return self._running()

    @contextmanager
    def _running(self) -> Iterator[ProviderConfig]:
        with MockLlm() as server:
            yield ProviderConfig(base_url=server.url + self._path, api_key_env="CONTRACT_API_KEY", **self._fields)


@pytest.mark.parametrize("case", judge_contract(RECORD, Served()))
def test_chat_completions(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


@pytest.mark.parametrize("case", judge_contract(RECORD, Served(wire_api="responses")))
def test_responses(case: Case, tmp_path: Path) -> None:
    case(tmp_path)


@pytest.mark.parametrize("case", judge_contract(RECORD, Served(path="", type="azure", api_version="2024-10-21")))
def test_azure(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
