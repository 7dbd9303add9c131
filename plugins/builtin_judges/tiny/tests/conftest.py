"""A model that follows a script, in the real process with the real protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import JudgeError, JudgeReply, JudgeRequest, ProviderConfig, ToolSchema
from vally_judge_tiny.judge import TinyJudge

FAKES = Path(__file__).parent / "fakes"
SCHEMA = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"score": {"type": "number", "description": "1 to 5"}, "why": {"type": "string"}},
                "required": ["score", "why"],
                "additionalProperties": False,
            },
        },
        "overall": {"type": "number"},
    },
    "required": ["scores", "overall"],
    "additionalProperties": False,
}
GRADE = {"scores": [{"score": 4, "why": "fine"}, {"score": 5, "why": "good"}], "overall": 4}


def check(args: Any) -> str | None:
    """Two scores, all of them from 1 to 5."""
    if len(args["scores"]) != 2:
        return "scores must have 2 items"
    scores = [args["overall"], *(item["score"] for item in args["scores"])]
    return None if all(1 <= score <= 5 for score in scores) else "scores go from 1 to 5"


def _is_scripted(reply: Any) -> bool:
    return isinstance(reply, dict) and bool(reply.keys() & {"content", "error", "crash", "hang", "raise"})


def _content(reply: Any) -> dict[str, Any]:
    return {"content": reply if isinstance(reply, str) else json.dumps(reply)}


class Scripted:
    """A judge whose model follows a script."""

    grade = GRADE

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *replies: Any) -> ProviderConfig:
        """Replies are texts, arguments of calls, or what the stand-in for llama.cpp takes."""
        lines = [json.dumps(reply if _is_scripted(reply) else _content(reply)) for reply in replies]
        self.path.write_text("\n".join(lines), encoding="utf-8")
        return ProviderConfig(type="tiny", options={"path": str(self.path)})

    def request(self, **fields: Any) -> JudgeRequest:
        """A question whose check wants two scores, all of them from 1 to 5."""
        facts = {
            "model": "some-model",
            "system_message": "You grade.",
            "user_message": "Grade this.",
            "tool": ToolSchema(name="submit_grade", description="Hand in the grade.", parameters=SCHEMA),
            "check": check,
            "timeout_s": 60,
            **fields,
        }
        return JudgeRequest(**facts)

    def ask(self, *replies: Any, **fields: Any) -> JudgeReply:
        """Ask one question."""
        return self._ask(self.write(*replies), **fields)

    def failure(self, *replies: Any, **fields: Any) -> JudgeError:
        """Ask one question that fails."""
        return self.failure_of(self.write(*replies), **fields)

    def failure_of(self, provider: ProviderConfig | None, **fields: Any) -> JudgeError:
        """Ask one question, with a provider of one's own, that fails."""
        with pytest.raises(JudgeError) as caught:
            self._ask(provider, **fields)
        return caught.value

    def _ask(self, provider: ProviderConfig | None, **fields: Any) -> JudgeReply:
        async def run() -> JudgeReply:
            judge = TinyJudge()
            judge.configure(provider)
            try:
                return await judge.judge(self.request(**fields))
            finally:
                await judge.shutdown()

        return anyio.run(run)

    @property
    def seen(self) -> list[dict[str, Any]]:
        """What the model was asked, and under which conditions."""
        lines = self.path.with_suffix(".seen").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def fake_llama(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of the model finds the stand-in instead of llama.cpp."""
    monkeypatch.syspath_prepend(FAKES)


@pytest.fixture
def scripted(tmp_path: Path, fake_llama: None) -> Scripted:
    return Scripted(tmp_path / "model.gguf")


@pytest.fixture
def schema() -> dict[str, Any]:
    return SCHEMA
