"""Questions of graders elsewhere, put to a judge here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import JudgeError, JudgeReply, JudgeRequest, ToolSchema
from vally_backend_ray.judge_service import JudgeService, judge_facts
from vally_backend_ray.messages import JudgeCall
from vally_backend_ray.pickling import unpacked
from vally_backend_ray.remote_judge import _question

TOOL = ToolSchema(name="submit", description="d", parameters={})


class FakeLink:
    """Remembers answers; `problem` is what the grader thinks of arguments."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any, Any]] = []
        self.problem: str | None = None
        self.checked: list[Any] = []
        self.broken = False

    def tell(self, method: str, attempt: str, call: str, reply: bytes, failure: Mapping[str, Any] | None) -> None:
        assert (method, attempt) == ("answer", "a")
        self.answers.append((call, unpacked(reply), failure))

    def call_blocking(self, method: str, attempt: str, call: str, arguments: Any, *, timeout: float) -> Any:
        if self.broken:
            raise TimeoutError
        self.checked.append((method, attempt, call, arguments))
        return self.problem


class FakeJudge:
    supports_files = True
    result_metadata: Mapping[str, object] = {"demo": True}

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[JudgeRequest] = []

    def model_for(self, configured: str | None) -> str:
        return configured or "judge-1"

    def effort_for(self, configured: str | None) -> str | None:
        return configured or "high"

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        if callable(self.answer):
            found: JudgeReply = await self.answer(request)
            return found
        if isinstance(self.answer, Exception):
            raise self.answer
        return JudgeReply(args=self.answer)


def question(**fields: Any) -> JudgeCall:
    request = JudgeRequest(model="m", system_message="s", user_message="u", tool=TOOL, **fields)
    return _question("1", request)


def asked(judge: FakeJudge, call: JudgeCall, link: FakeLink | None = None) -> FakeLink:
    used = link or FakeLink()

    async def main() -> None:
        service = JudgeService("a", judge, used)  # type: ignore[arg-type]  # all that it uses of a link
        service.ask(call)
        while not used.answers:
            await asyncio.sleep(0.001)
        await service.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    return used


def test_facts_that_need_no_call() -> None:
    facts = judge_facts(FakeJudge({}))
    assert facts is not None
    assert (facts.supports_files, facts.metadata, facts.model, facts.effort) == (
        True,
        {"demo": True},
        "judge-1",
        "high",
    )
    assert judge_facts(None) is None


def test_an_answer_and_its_check() -> None:
    async def answer(request: JudgeRequest) -> JudgeReply:
        return JudgeReply(args={"problem": request.check({"score": 4})})

    link = FakeLink()
    link.problem = "too much"
    ((call, reply, failure),) = asked(FakeJudge(answer), question(), link).answers
    assert (call, reply.args, failure) == ("1", {"problem": "too much"}, None)
    assert link.checked == [("check", "a", "1", {"score": 4})]


def test_a_worker_that_cannot_check_is_an_error() -> None:
    async def answer(request: JudgeRequest) -> JudgeReply:
        request.check({})
        raise AssertionError("not reached")

    link = FakeLink()
    link.broken = True
    ((_, reply, failure),) = asked(FakeJudge(answer), question(), link).answers
    assert reply is None
    assert failure["kind"] == "transport"


def test_errors_keep_kind_and_usage() -> None:
    error = JudgeError("slow", kind="timeout", usage={"input_tokens": 3})
    ((_, reply, failure),) = asked(FakeJudge(error), question()).answers
    assert reply is None
    assert failure == {"message": "slow", "kind": "timeout", "usage": {"input_tokens": 3}, "cost": None}


def test_evidence_is_where_the_judge_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "diff.txt").write_text("evidence")
    seen: list[str] = []

    async def answer(request: JudgeRequest) -> JudgeReply:
        assert request.evidence_dir is not None
        assert request.evidence_dir != tmp_path
        (file,) = request.evidence_files
        seen.append(file.read_text())
        seen.append(request.user_message.replace(str(request.evidence_dir), "<here>"))
        return JudgeReply(args={})

    request = JudgeRequest(
        model="m",
        system_message="s",
        user_message=f"read {tmp_path}/deep/diff.txt",
        tool=TOOL,
        evidence_dir=tmp_path,
        evidence_files=(tmp_path / "deep" / "diff.txt",),
    )
    asked(FakeJudge(answer), _question("1", request))
    assert seen == ["evidence", "read <here>/deep/diff.txt"]


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt"])
def test_evidence_of_a_strange_name_is_refused(name: str) -> None:
    call = JudgeCall(call="1", request=question().request, evidence_dir="/e", evidence=((name, b"x"),))
    ((_, reply, failure),) = asked(FakeJudge({}), call).answers
    assert reply is None
    assert "leaves its directory" in failure["message"]


def test_calls_end_with_the_attempt() -> None:
    ended: list[str] = []

    async def answer(_: JudgeRequest) -> JudgeReply:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        raise AssertionError("not reached")

    async def main() -> None:
        judge = FakeJudge(answer)
        service = JudgeService("a", judge, FakeLink())  # type: ignore[arg-type]  # all that it uses of a link
        service.ask(question())
        while not judge.requests:
            await asyncio.sleep(0.001)
        await service.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert ended == ["ended"]
