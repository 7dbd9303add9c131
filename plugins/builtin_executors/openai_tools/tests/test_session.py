"""The loop: prompts, answers, calls, limits and failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from endpoints import FixedEndpoint

from vally import Event, ExecutorError, StopSignal, Trajectory, TurnComplete
from vally.testing import MockLlm

pytestmark = pytest.mark.anyio
SCENARIO = """Write a file.
!tool create {"path": "notes/a.txt", "file_text": "one\\n"}
!tool bash {"command": "cat notes/a.txt; echo two >&2; exit 3"}
!say All done.
"""


def of(trajectory: Trajectory, *types: str) -> list[Event]:
    return [event for event in trajectory.events if event.type in types]


def results(trajectory: Trajectory) -> list[dict[str, Any]]:
    return [event.data for event in of(trajectory, "tool_result")]


def answer(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, **choice}]}


def asks(*calls: tuple[str, object], **message: Any) -> dict[str, Any]:
    """A message with calls; arguments that are no text are written as JSON."""
    listed = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    return {"role": "assistant", "tool_calls": listed, **message}


async def test_a_file_a_command_and_a_text(execute: Any, work_dir: Path) -> None:
    trajectory = await execute(SCENARIO)
    assert (work_dir / "notes" / "a.txt").read_text() == "one\n"
    assert [event.type for event in trajectory.events] == [
        "user_message",
        *("turn_start", "token_usage", "tool_call", "tool_result", "turn_end"),
        *("turn_start", "token_usage", "tool_call", "tool_result", "turn_end"),
        *("turn_start", "token_usage", "assistant_message", "turn_end"),
    ]
    created, ran = results(trajectory)
    assert created["result"] == "Created notes/a.txt"
    assert ran["result"] == "one\ntwo\n[exit code 3]"
    assert (ran["success"], ran["exitCode"]) == (True, 3)
    assert (trajectory.output, trajectory.end_reason) == ("All done.", "completed")
    assert trajectory.metrics.turn_count == 3
    assert trajectory.metadata["executor"] == "openai-tools"
    assert trajectory.metadata["executorVersion"]


async def test_every_prompt_goes_on_in_the_same_conversation(execute: Any, model: MockLlm) -> None:
    seen: list[TurnComplete] = []

    async def on_turn_complete(done: TurnComplete) -> None:
        seen.append(done)

    first = 'Hello.\n!reason Think.\n!tool bash {"command": "echo 1"}\n!say One.'
    trajectory = await execute(first, "And now?\n!say Two.", on_turn_complete=on_turn_complete)
    assert trajectory.output == "Two."
    assert seen == [TurnComplete(0, False), TurnComplete(1, True)]
    assert [event.data["content"] for event in of(trajectory, "reasoning")] == ["Think."]
    assert {event.turn for event in trajectory.events} == {0, 1}
    asked = model.requests[-1].body["messages"]
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert not any("reasoning_content" in message for message in asked)


async def test_the_model_gets_its_reasoning_back_while_it_works(execute: Any, model: MockLlm) -> None:
    await execute('!reason Think.\n!tool bash {"command": "true"}\n!say Done.')
    assert model.requests[-1].body["messages"][2]["reasoning_content"] == "Think."


async def test_calls_of_one_answer_run_side_by_side(execute: Any, work_dir: Path, model: MockLlm) -> None:
    # Each waits for what the other does, so that one after the other none would end.
    wait = "for i in $(seq 600); do test -e {there} && exit 0; sleep 0.05; done; exit 1"
    script = "\n".join(
        f"!{'also' if number else 'tool'} bash " + json.dumps({"command": f"touch {here}; {wait.format(there=there)}"})
        for number, (here, there) in enumerate([("a", "b"), ("b", "a")])
    )
    trajectory = await execute(f"{script}\n!say Both.")
    assert [data["exitCode"] for data in results(trajectory)] == [0, 0]
    assert trajectory.metrics.turn_count == 2
    calls = [event.data["toolCallId"] for event in of(trajectory, "tool_call")]
    sent = model.requests[-1].body["messages"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == calls


async def test_many_calls_of_one_answer(execute: Any, endpoint: FixedEndpoint, work_dir: Path) -> None:
    endpoint.give(answer(asks(*(("bash", {"command": f"echo {number}"}) for number in range(60)))))
    endpoint.give(answer({"content": "All."}))
    trajectory = await execute("hi", url=endpoint.url)
    assert trajectory.output == "All."
    sent = [message["content"] for message in endpoint.bodies[1]["messages"] if message["role"] == "tool"]
    assert sent == [f"{number}\n[exit code 0]" for number in range(60)]


async def test_counts_of_tokens(execute: Any) -> None:
    trajectory = await execute("!usage 100 20 30\n!say Hello.")
    (usage,) = of(trajectory, "token_usage")
    assert usage.data["inputTokens"] == 100
    assert usage.data["cacheReadTokens"] == 30
    assert (usage.data["model"], trajectory.metrics.token_usage.total_tokens) == ("scripted", 120)


async def test_a_price_that_the_endpoint_tells(execute: Any, endpoint: FixedEndpoint) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.25}
    endpoint.give({**answer({"content": "Hello."}), "usage": usage})
    trajectory = await execute("hi", url=endpoint.url)
    assert trajectory.metrics.token_usage.cost.model_dump() == {"provider": "openai", "unit": "usd", "amount": 0.25}


async def test_what_is_asked_for_is_sent(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer({"content": "Hello."}))
    await execute(
        "hi",
        url=endpoint.url,
        config={
            "provider": {"apiKeyEnv": "A_KEY", "headers": {"X-Team": "a"}, "model": "on-the-wire"},
            "tools": ["bash", "skill"],
            "temperature": 0.5,
            "maxOutputTokens": 99,
            "systemPrompt": {"content": "Be brief."},
        },
        seed=7,
        reasoning_effort="high",
        process_env={"A_KEY": "a-very-secret-key"},
    )
    (body,), (headers,) = endpoint.bodies, endpoint.headers
    assert endpoint.paths == ["/chat/completions"]
    assert headers["authorization"] == "Bearer a-very-secret-key"
    assert headers["x-team"] == "a"
    assert {key: body[key] for key in ("model", "temperature", "max_tokens", "seed", "reasoning_effort")} == {
        "model": "on-the-wire",
        "temperature": 0.5,
        "max_tokens": 99,
        "seed": 7,
        "reasoning_effort": "high",
    }
    assert [tool["function"]["name"] for tool in body["tools"]] == ["bash"]
    assert body["messages"][0]["content"].endswith("\n\nBe brief.")


async def test_nothing_that_was_not_asked_for_is_sent(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer({"content": "Hello."}))
    config = {"tools": [], "systemPrompt": {"mode": "replace", "content": "Only this."}}
    await execute("hi", url=endpoint.url, config=config)
    assert endpoint.bodies == [
        {
            "model": "scripted",
            "messages": [{"role": "system", "content": "Only this."}, {"role": "user", "content": "hi"}],
        }
    ]
    assert "authorization" not in endpoint.headers[0]


@pytest.mark.parametrize(
    ("version", "path"),
    [
        (None, "/openai/v1/chat/completions"),
        ("2026-01-01", "/openai/deployments/a%2Fmodel/chat/completions?api-version=2026-01-01"),
    ],
)
@pytest.mark.parametrize("ending", ["", "/", "/openai", "/openai/v1"])
async def test_azure(execute: Any, endpoint: FixedEndpoint, version: str | None, path: str, ending: str) -> None:
    endpoint.give(answer({"content": "Hello."}))
    provider = {"type": "azure", "apiKeyEnv": "A_KEY", **({"apiVersion": version} if version else {})}
    await execute(
        "hi",
        url=endpoint.url + ending,
        config={"provider": provider},
        model="a/model",
        process_env={"A_KEY": "a-very-secret-key"},
    )
    assert endpoint.paths == [path]
    assert endpoint.headers[0]["api-key"] == "a-very-secret-key"
    assert "authorization" not in endpoint.headers[0]


async def test_a_limit_of_output_under_its_newer_name(execute: Any, endpoint: FixedEndpoint) -> None:
    reason = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    endpoint.give({"error": {"message": reason, "param": "max_tokens"}}, status=400)
    endpoint.give(answer({"content": "Hello."}))
    trajectory = await execute("hi", url=endpoint.url, config={"maxOutputTokens": 5})
    assert trajectory.output == "Hello."
    assert [body.get("max_completion_tokens") for body in endpoint.bodies] == [None, 5]
    await execute("hi", url=endpoint.url, config={"maxOutputTokens": 5})
    assert endpoint.bodies[2].get("max_completion_tokens") == 5


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ("{oops", "arguments-not-json", "the arguments are not valid JSON: "),
        ("[1]", "invalid-arguments", "the arguments must be a JSON object"),
        ("{}", "invalid-arguments", "the argument 'command' is missing"),
        ({"command": ["ls"]}, "invalid-arguments", "the argument 'command' must be a string"),
        ({"command": "ls", "cmd": "x"}, "invalid-arguments", "there is no argument 'cmd'; there are command, "),
        ({"command": "a\0b"}, "invalid-arguments", "the command holds a NUL character"),
    ],
)
async def test_arguments_that_do_not_fit(
    execute: Any, endpoint: FixedEndpoint, given: object, code: str, text: str
) -> None:
    endpoint.give(answer(asks(("bash", given))))
    endpoint.give(answer({"content": "I see."}))
    trajectory = await execute("hi", url=endpoint.url)
    (result,) = results(trajectory)
    assert (result["success"], result["errorCode"]) == (False, code)
    assert result["result"].startswith(text)
    assert endpoint.bodies[1]["messages"][-1]["content"] == result["result"]
    assert json.loads(endpoint.bodies[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]) in ({}, given)
    assert (trajectory.output, trajectory.end_reason) == ("I see.", "completed")


async def test_a_tool_that_is_not_there(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer(asks(("edit", {"path": "a"}), ("skill", {"skill": "a"}), ("", {}))))
    endpoint.give(answer({"content": "I see."}))
    trajectory = await execute("hi", url=endpoint.url, config={"tools": ["view", "skill"]})
    assert [data["result"] for data in results(trajectory)] == [
        "there is no tool 'edit'; there are view",
        "there is no tool 'skill'; there are view",
        "there is no tool ''; there are view",
    ]
    assert {data["errorCode"] for data in results(trajectory)} == {"unknown-tool"}


async def test_three_calls_in_a_row_that_are_no_json_end_the_session(execute: Any, endpoint: FixedEndpoint) -> None:
    for given in ("{oops", "{oops", "{}", "{oops", "{oops", "{oops"):
        endpoint.give(answer(asks(("bash", given))))
    endpoint.give(answer({"content": "never"}))
    trajectory = await execute("hi", url=endpoint.url)
    assert (trajectory.end_reason, len(results(trajectory))) == ("error", 6)
    (error,) = of(trajectory, "error")
    assert error.data["message"] == "the arguments of 3 calls in a row were not valid JSON"


@pytest.mark.parametrize("given", [{"command": "echo 1"}, "", None])
async def test_arguments_in_other_forms(execute: Any, endpoint: FixedEndpoint, given: object) -> None:
    name = "bash" if given else "view"
    endpoint.give(answer({"tool_calls": [{"function": {"name": name, "arguments": given}}]}))
    endpoint.give(answer({"content": "I see."}))
    (result,) = results(await execute("hi", url=endpoint.url))
    assert result["success"] is (name == "bash")


async def test_ids_that_repeat(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer(asks(("bash", {"command": "echo 1"}))))
    endpoint.give(answer(asks(("bash", {"command": "echo 2"}))))
    endpoint.give(answer({"content": "I see."}))
    trajectory = await execute("hi", url=endpoint.url)
    calls, answers = of(trajectory, "tool_call"), results(trajectory)
    assert [event.data["toolCallId"] for event in calls] == [data["toolCallId"] for data in answers] == ["c0", "c0-2"]
    assert [data["result"] for data in answers] == ["1\n[exit code 0]", "2\n[exit code 0]"]


@pytest.mark.parametrize(
    ("message", "choice", "end"),
    [
        ({"content": "Half an ans"}, {"finish_reason": "length"}, "budget"),
        (asks(("bash", '{"comm')), {"finish_reason": "length"}, "budget"),
        ({"content": ""}, {"finish_reason": "content_filter"}, "refused"),
        ({"content": None, "refusal": "I will not."}, {}, "refused"),
        ({"content": [{"type": "text", "text": "In parts."}]}, {}, "completed"),
        ({"content": None}, {}, "completed"),
    ],
)
async def test_how_an_answer_ends_the_session(
    execute: Any, endpoint: FixedEndpoint, message: Any, choice: Any, end: str
) -> None:
    endpoint.give(answer(message, **choice))
    trajectory = await execute("hi", url=endpoint.url)
    assert trajectory.end_reason == end
    assert results(trajectory) == []
    assert trajectory.metrics.turn_count == 1
    assert trajectory.output in ("Half an ans", "I will not.", "In parts.", "")


async def test_the_limit_of_steps_holds_for_each_prompt(execute: Any) -> None:
    once = '!tool bash {"command": "true"}\n!say Done.'
    for_ever = '!tool bash {"command": "true"}\n' * 9
    trajectory = await execute(once, for_ever, config={"maxSteps": 2})
    assert trajectory.end_reason == "budget"
    assert [event.turn for event in of(trajectory, "turn_end")] == [0, 0, 1, 1]


@pytest.mark.parametrize(("limit", "turns"), [({"max_turns": 1}, 2), ({"max_tokens": 15}, 2), ({"max_tokens": 5}, 1)])
async def test_limits_of_the_stimulus_end_what_is_over_them(execute: Any, limit: dict[str, int], turns: int) -> None:
    script = '!usage 8 2\n!tool bash {"command": "true"}\n' * 5
    trajectory = await execute(script, **limit)
    assert (trajectory.end_reason, trajectory.metrics.turn_count) == ("budget", turns)


async def test_the_window_of_the_model_is_full(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer(asks(("bash", {"command": "true"}))))
    endpoint.give({"error": {"message": "This model's maximum context length is 10 tokens."}}, status=400)
    trajectory = await execute("hi", url=endpoint.url)
    assert (trajectory.end_reason, trajectory.metrics.error_count) == ("budget", 0)
    script = '!usage 80 20\n!tool bash {"command": "true"}\n' * 5
    trajectory = await execute(script, config={"provider": {"maxPromptTokens": 100}})
    assert (trajectory.end_reason, trajectory.metrics.turn_count) == ("budget", 1)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_failure_that_passes(execute: Any, model: MockLlm, status: int) -> None:
    before = len(model.requests)
    trajectory = await execute(f"{status}\n!fail {status} times=2 retry-after=0\n!say At last.")
    assert trajectory.output == "At last."
    assert len(model.requests) - before == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_failure_that_stays_is_not_tried_again(execute: Any, model: MockLlm, status: int) -> None:
    before = len(model.requests)
    with pytest.raises(ExecutorError) as caught:
        await execute(f"hi\n!fail {status} no way\n!say never")
    error = caught.value
    assert error.message == f"the model's endpoint: HTTP {status}: no way"
    assert error.details == {"status": status}
    assert (error.code, error.retryable) == ("provider-auth" if status in (401, 403) else "provider-error", False)
    assert len(model.requests) - before == 1


async def test_the_events_before_a_failure_are_kept(execute: Any) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute('!tool bash {"command": "echo 1"}\n!fail 429 retry-after=600', config={"retries": 0})
    error = caught.value
    assert (error.code, error.retryable, error.retry_after_ms) == ("provider-rate-limit", True, 600_000)
    assert error.trajectory.end_reason == "error"
    assert len(of(error.trajectory, "tool_result", "error")) == 2


async def test_a_connection_that_breaks(execute: Any, model: MockLlm) -> None:
    before = len(model.requests)
    with pytest.raises(ExecutorError) as caught:
        await execute("!reset\n!say never", config={"retries": 1})
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)
    assert len(model.requests) - before == 2


async def test_nobody_at_the_endpoint(execute: Any) -> None:
    with pytest.raises(ExecutorError, match="connection failed") as caught:
        await execute("hi", url="http://127.0.0.1:9", config={"retries": 0})
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)


async def test_an_answer_that_takes_too_long(execute: Any) -> None:
    config = {"retries": 0, "requestTimeout": "100ms"}
    with pytest.raises(ExecutorError, match=r"no answer within 0\.1s") as caught:
        await execute("!sleep 60\n!say never", config=config)
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)


NO_ANSWERS = [
    ("<html>Not found</html>", "the endpoint's answer is not JSON"),
    ('{"choices": [{"mess', "the endpoint's answer is not JSON"),
    ("[1]", "the endpoint's answer is not a JSON object"),
    ("", "the endpoint's answer is not JSON"),
    ("[" * 100_000, "the endpoint's answer is not JSON"),
    ('data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n', "the endpoint's answer is not JSON"),
    ("{}", "the endpoint's answer has no message"),
    ('{"choices": []}', "the endpoint's answer has no message"),
    ('{"choices": [{"message": 1}]}', "the endpoint's answer has no message"),
]


@pytest.mark.parametrize(("text", "message"), NO_ANSWERS)
async def test_an_endpoint_that_does_not_speak_the_protocol(
    execute: Any, endpoint: FixedEndpoint, text: str, message: str
) -> None:
    endpoint.give_text(text)
    with pytest.raises(ExecutorError, match=message) as caught:
        await execute("hi", url=endpoint.url, config={"retries": 0})
    assert (caught.value.code, caught.value.retryable) == ("agent-protocol", False)
    assert caught.value.details["line"] == text[:200]


@pytest.mark.parametrize(("text", "message"), NO_ANSWERS[:3])
async def test_what_is_no_answer_is_asked_for_again(
    execute: Any, endpoint: FixedEndpoint, text: str, message: str
) -> None:
    endpoint.give_text(text)
    endpoint.give(answer({"content": "At last."}))
    trajectory = await execute("hi", url=endpoint.url)
    assert (trajectory.output, trajectory.metrics.error_count, len(endpoint.bodies)) == ("At last.", 0, 2)

    endpoint.answers.clear()
    endpoint.give_text(text)
    with pytest.raises(ExecutorError, match=message) as caught:
        await execute("hi", url=endpoint.url, config={"retries": 1})
    assert (caught.value.code, len(endpoint.bodies)) == ("agent-protocol", 4)


async def test_a_page_that_holds_the_key(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give_text("<p>a-very-secret-key</p>")
    with pytest.raises(ExecutorError) as caught:
        await execute(
            "hi",
            url=endpoint.url,
            config={"retries": 0, "provider": {"apiKeyEnv": "A_KEY"}},
            process_env={"A_KEY": "a-very-secret-key"},
        )
    assert caught.value.details["line"] == "<p><redacted></p>"


async def test_characters_that_were_cut(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give_text('\ufeff{"choices": [{"message": {"content": "caf\udcc3"}}]}')
    assert (await execute("hi", url=endpoint.url)).output == "caf\ufffd"


def broken_off(error: object, **choice: Any) -> dict[str, Any]:
    """An answer whose only choice has an error, as routers of models tell that of the model behind them."""
    return answer({"role": "assistant", "content": ""}, error=error, finish_reason="error", **choice)


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        ({"error": {"code": 401, "message": "oh no"}}, "provider-auth", 401),
        (broken_off({"code": 403, "message": "oh no"}), "provider-auth", 403),
        (broken_off({"code": 400, "message": "oh no"}), "provider-error", 400),
        (broken_off({"code": "invalid_prompt", "message": "oh no"}), "provider-error", 400),
        ({**answer({"content": ""}), "error": {"code": "402", "message": "oh no"}}, "provider-error", 402),
    ],
)
async def test_an_error_inside_an_answer(
    execute: Any, endpoint: FixedEndpoint, body: object, code: str, status: int
) -> None:
    endpoint.give(body)
    with pytest.raises(ExecutorError, match=f"HTTP {status}: oh no") as caught:
        await execute("hi", url=endpoint.url)
    assert (caught.value.code, caught.value.retryable) == (code, False)
    assert caught.value.details == {"status": status}
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("told", ["choice", "answer", "stream"])
async def test_an_error_inside_an_answer_that_may_pass(execute: Any, endpoint: FixedEndpoint, told: str) -> None:
    error = {"code": 429, "message": "busy", "metadata": {"error_type": "rate_limit_exceeded"}}
    half = {"choices": [{"delta": {"content": "Half an"}}]}
    texts = {
        "choice": json.dumps(answer({"content": "Half an"}, error=error, finish_reason="error")),
        "answer": json.dumps({"error": error}),
        "stream": f": PROCESSING\n\ndata: {json.dumps(half)}\n\ndata: {json.dumps({**half, 'error': error})}\n\n",
    }
    endpoint.give_text(texts[told], retry_after="0")
    with pytest.raises(ExecutorError, match="HTTP 429: busy") as caught:
        await execute("hi", url=endpoint.url)
    assert (caught.value.code, caught.value.retryable) == ("provider-rate-limit", True)
    assert len(endpoint.bodies) == 4
    endpoint.give(answer({"content": "At last."}))
    assert (await execute("hi", url=endpoint.url)).output == "At last."


async def test_a_conversation_that_became_too_long_as_a_router_tells_it(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give(answer(asks(("bash", {"command": "true"}))))
    raw = json.dumps({"error": {"message": "This model's maximum context length is 10 tokens."}})
    endpoint.give(broken_off({"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}}))
    trajectory = await execute("hi", url=endpoint.url)
    assert (trajectory.end_reason, trajectory.metrics.error_count) == ("budget", 0)


async def test_a_redirect_is_not_followed(execute: Any, endpoint: FixedEndpoint) -> None:
    endpoint.give({}, status=302)
    with pytest.raises(ExecutorError, match="HTTP 302"):
        await execute("hi", url=endpoint.url)
    assert endpoint.paths == ["/chat/completions"]


@pytest.mark.parametrize(("reason", "end"), [("cancelled", "cancelled"), ("timeout", "agent_timeout")])
@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
async def test_a_stop_during_a_command(
    execute: Any, work_dir: Path, trial_id: str, reason: str, end: str, trap: str
) -> None:
    stop, found = StopSignal(), []
    script = "!tool bash " + json.dumps({"command": f"{trap}touch begun; sleep 600"})

    async def run() -> None:
        found.append(await execute(script, stop=stop))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while not (work_dir / "begun").exists():
                await anyio.sleep(0.01)
            stop.set(reason)
    (trajectory,) = found
    assert trajectory.end_reason == end
    assert len(of(trajectory, "tool_call")) == 1
    assert of(trajectory, "tool_result") == []


async def test_a_stop_while_the_model_thinks(execute: Any) -> None:
    stop, found = StopSignal(), []

    async def run() -> None:
        found.append(await execute("!sleep 600\n!say never", stop=stop))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.sleep(0.1)
            stop.set("cancelled")
    assert found[0].end_reason == "cancelled"


async def test_the_agents_own_limit_of_time(execute: Any) -> None:
    trajectory = await execute("!sleep 60\n!say never", max_agent_duration_ms=200)
    assert trajectory.end_reason == "agent_timeout"


async def test_a_model_is_needed(execute: Any) -> None:
    with pytest.raises(ExecutorError, match=r"needs a model: set defaults\.model") as caught:
        await execute("hi", model=None)
    assert (caught.value.code, caught.value.retryable) == ("executor-config", False)


async def test_a_variable_that_is_not_set(execute: Any) -> None:
    with pytest.raises(ExecutorError, match=r"provider\.apiKeyEnv: environment variable 'A_KEY' is not set") as caught:
        await execute("hi", config={"provider": {"apiKeyEnv": "A_KEY"}})
    assert caught.value.code == "executor-config"
