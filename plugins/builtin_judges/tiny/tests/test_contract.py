"""The judge keeps the contract of judges; a model that ends stands for an endpoint that fails."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from vally import ProviderConfig
from vally.testing import Answer, Case, Hang, ModelReply, Text, judge_contract
from vally_judge_tiny import plugin

(RECORD,) = plugin.vally_judges()


def as_line(reply: ModelReply) -> str:
    if isinstance(reply, Answer | Text):
        return json.dumps({"content": reply.text if isinstance(reply, Text) else json.dumps(reply.args)})
    if isinstance(reply, Hang):
        return json.dumps({"hang": True})
    passing = reply.code == 429 or reply.code >= 500
    return json.dumps({"crash": True} if passing else {"error": f"HTTP {reply.code}"})


@contextmanager
def serve(replies: Sequence[ModelReply]) -> Iterator[ProviderConfig]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_text("\n".join(map(as_line, replies)), encoding="utf-8")
        yield ProviderConfig(type="tiny", options={"path": str(path)})


@pytest.mark.usefixtures("fake_llama")
@pytest.mark.parametrize("case", judge_contract(RECORD, serve))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
