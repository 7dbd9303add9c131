"""The scripted model server: scripts, faults, dialects and the log, over real HTTP."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from vally.testing import MockLlm

JSON = {"Content-Type": "application/json"}
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI = "/v1beta/models/some-model:generateContent"
GEMINI_STREAM = "/v1beta/models/some-model:streamGenerateContent"


@pytest.fixture
def server() -> Iterator[MockLlm]:
    with MockLlm() as running:
        yield running


class Reply:
    """The answer to one request."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[Any]:
        """The data of server-sent events, parsed."""
        lines = [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


def send(
    server: MockLlm, path: str, body: object = None, *, method: str = "POST", headers: Mapping[str, str] = JSON
) -> Reply:
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=20)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, dict(headers))
        return Reply(connection.getresponse())
    finally:
        connection.close()


def chat(server: MockLlm, *messages: Any, **fields: Any) -> Reply:
    turns = [{"role": "user", "content": text} if isinstance(text, str) else text for text in messages]
    return send(server, CHAT, {"model": "m", "messages": turns, **fields})


def said(reply: Reply) -> Any:
    """The message of a chat completion."""
    return reply.body["choices"][0]["message"]


def answered(*texts: str) -> list[Any]:
    """Assistant messages."""
    return [{"role": "assistant", "content": text} for text in texts]


def test_a_prompt_without_a_script(server: MockLlm) -> None:
    assert said(chat(server, "Hello"))["content"] == "I have no script."


@pytest.mark.parametrize("text", ["!unknown line", "Is this a !say?", "![image](a.png)"])
def test_what_is_no_script(server: MockLlm, text: str) -> None:
    assert said(chat(server, text))["content"] == "I have no script."


SCRIPT = 'Do it.\n!tool write {"path": "a"}\n!also view {}\n  !say All done.\nThank you.'


def test_each_answer_is_the_next_step_and_the_last_repeats(server: MockLlm) -> None:
    first = said(chat(server, SCRIPT))
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in first["tool_calls"]]
    assert calls == [("write", {"path": "a"}), ("view", {})]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in first["tool_calls"]]
    assert said(chat(server, SCRIPT, first, *results))["content"] == "All done."
    assert said(chat(server, SCRIPT, first, *results, *answered("All done.", "again")))["content"] == "All done."


def test_parallel_calls_in_messages_of_their_own_are_one_answer(server: MockLlm) -> None:
    first = said(chat(server, SCRIPT))
    apart: list[Any] = []
    for call in first["tool_calls"]:
        apart.append({"role": "assistant", "content": None, "tool_calls": [call]})
        apart.append({"role": "tool", "tool_call_id": call["id"], "content": "ok"})
    assert said(chat(server, SCRIPT, *apart))["content"] == "All done."


def test_the_last_message_with_a_script_counts(server: MockLlm) -> None:
    assert said(chat(server, "!say one", *answered("one"), "!say two", "no script here"))["content"] == "two"


def test_a_script_that_ends_with_a_call_ends_with_done(server: MockLlm) -> None:
    assert said(chat(server, "!tool a {}", *answered("")))["content"] == "done"


def test_texts_may_stand_between_calls(server: MockLlm) -> None:
    script = "!say hm\n!say well\n!tool submit {}"
    assert [said(chat(server, script, *answered(*"x" * n))).get("content") for n in range(4)] == [
        "hm",
        "well",
        None,
        "done",
    ]


def test_names_are_replaced_in_texts_and_in_json() -> None:
    with MockLlm(values={"NAME": 'a "b"', "N": "3"}) as server:
        assert said(chat(server, "!say ${NAME} ${OTHER}"))["content"] == 'a "b" ${OTHER}'
        call = said(chat(server, '!tool t {"text": "${NAME}", "count": ${N}}'))["tool_calls"][0]
        assert json.loads(call["function"]["arguments"]) == {"text": 'a "b"', "count": 3}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("!tool", "a tool needs a name"),
        ("!tool t {oops}", "Expecting property name"),
        ("!tool t [1]", "must be a JSON object"),
        ("!usage 1", "expected IN OUT [CACHED]"),
        ("!fail 200", "expected an HTTP status"),
        ("!fail soon", "expected an HTTP status from 400 to 599, not 'soon'"),
        ("!fail", "expected an HTTP status from 400 to 599"),
        ("!fail 500 times=two", "expected times=N, not 'two'"),
        ("!truncate", "expected a number of pieces"),
        ("!usage many 1", "expected IN OUT [CACHED], not 'many'"),
        ("!sleep a while", "expected seconds, not 'a while'"),
        ("!sleep nan", "expected seconds, not 'nan'"),
        ("!chunk-delay", "expected seconds"),
        ("!tools t {}", "there is no '!tools', did you mean 'tool'?"),
        ("!SAY hello", "there is no '!SAY', did you mean 'say'?"),
        ("!reset now", "'now' is not understood"),
        ("!sleep -1", "expected seconds"),
        ("!grade {", "Expecting property name"),
    ],
)
def test_a_line_that_cannot_be_understood_is_quoted(server: MockLlm, line: str, problem: str) -> None:
    reply = chat(server, line)
    assert reply.status == 400
    assert reply.body["error"]["message"].startswith(f"script line '{line}': ")
    assert problem in reply.body["error"]["message"]


@pytest.mark.parametrize("line", ["![image](x.png)", "!important", "!ab c", "!day", "!", "! say x", "!tool: x"])
def test_other_lines_may_begin_like_those_of_a_script(server: MockLlm, line: str) -> None:
    assert said(chat(server, line))["content"] == "I have no script."
    assert said(chat(server, f"{line}\n!say hello"))["content"] == "hello"


def test_token_counts_are_scripted_or_estimated(server: MockLlm) -> None:
    usage = chat(server, "!usage 100 20 30\n!say x").body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (100, 20, 120)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 30}
    estimated = chat(server, "!say 12345678", {"role": "system", "content": "x" * 386}).body["usage"]
    assert (estimated["prompt_tokens"], estimated["completion_tokens"]) == (99, 2)


def test_cached_tokens_are_not_input_tokens_of_messages(server: MockLlm) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "!usage 100 20 30\n!say x"}]}
    usage = send(server, MESSAGES, body).body["usage"]
    assert [usage[key] for key in ("input_tokens", "cache_read_input_tokens", "output_tokens")] == [70, 30, 20]


GRADE = {"overall_score": 4}
GRADED = f"!fail 500\n!say never\n!grade {json.dumps(GRADE)}"


@pytest.mark.parametrize("name", ["submit_grade", "submit_comparison"])
def test_a_grade_answers_requests_that_offer_its_tool(server: MockLlm, name: str) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}}]
    call = said(chat(server, GRADED, tools=tools))["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == (name, GRADE)


SCHEMA = {"type": "json_schema", "name": "s", "schema": {}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": GRADED}], "response_format": SCHEMA}),
        (RESPONSES, {"input": GRADED, "text": {"format": SCHEMA}}),
        (MESSAGES, {"messages": [{"role": "user", "content": GRADED}], "output_config": {"format": SCHEMA}}),
        (GEMINI, {"contents": [{"parts": [{"text": GRADED}]}], "generationConfig": {"responseSchema": {"x": 1}}}),
    ],
)
def test_a_grade_answers_requests_for_a_schema(server: MockLlm, path: str, body: Any) -> None:
    reply = send(server, path, body)
    assert reply.status == 200
    assert json.dumps(json.dumps(GRADE)) in reply.text


def test_a_grade_is_for_such_requests_only(server: MockLlm) -> None:
    assert chat(server, GRADED).status == 500


def test_delays(server: MockLlm) -> None:
    began = time.monotonic()
    chat(server, "!sleep 0.2\n!say x")
    assert time.monotonic() - began >= 0.2
    began = time.monotonic()
    chat(server, "!chunk-delay 0.1\n!say a b", stream=True)
    assert time.monotonic() - began >= 0.3


def test_failures_happen_as_often_as_told_and_in_order(server: MockLlm) -> None:
    script = "!fail 429 times=2 retry-after=1.5\n!fail 400 times=1 no temperature\n!say at last"
    replies = [chat(server, script) for _ in range(4)]
    assert [reply.status for reply in replies] == [429, 429, 400, 200]
    assert replies[0].headers["Retry-After"] == "1.5"
    assert [reply.body["error"]["message"] for reply in replies[1:3]] == ["scripted failure", "no temperature"]


def test_failures_are_counted_for_each_conversation_and_step(server: MockLlm) -> None:
    script = "!fail 500 times=1\n!say one\n!fail 503 times=1\n!say two"
    assert [chat(server, script).status for _ in range(2)] == [500, 200]
    assert [chat(server, script, *answered("one")).status for _ in range(2)] == [503, 200]
    assert [chat(server, script, model="other").status for _ in range(2)] == [500, 200]
    assert [chat(server, {"role": "system", "content": "s"}, script).status for _ in range(2)] == [500, 200]


def test_a_failure_without_a_number_lasts(server: MockLlm) -> None:
    assert {chat(server, "!fail 401\n!say never").status for _ in range(4)} == {401}


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "!fail 429"}]}, {"code": "rate_limit_exceeded"}),
        (RESPONSES, {"input": "!fail 429"}, {"code": "rate_limit_exceeded"}),
        (MESSAGES, {"messages": [{"role": "user", "content": "!fail 429"}]}, {"type": "rate_limit_error"}),
        (GEMINI, {"contents": [{"parts": [{"text": "!fail 429"}]}]}, {"code": 429, "status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_failures_have_the_shape_of_their_dialect(server: MockLlm, path: str, body: Any, error: Any) -> None:
    found = send(server, path, body).body["error"]
    assert {key: found[key] for key in error} == error


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_that_is_not_json(server: MockLlm, stream: bool) -> None:
    reply = chat(server, "!malformed times=1\n!say fine", stream=stream)
    assert reply.status == 200
    with pytest.raises(ValueError, match=r"Invalid control|Unterminated"):
        reply.events if stream else reply.body  # noqa: B018  # parsing is the test
    assert "fine" in chat(server, "!malformed times=1\n!say fine", stream=stream).text


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_cut_off(server: MockLlm, stream: bool) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        chat(server, "!truncate 2\n!say one two three", stream=stream)
    text = caught.value.partial.decode()
    assert "usage" not in text
    assert text.count("data: ") == (2 if stream else 0)


def test_a_connection_that_is_reset(server: MockLlm) -> None:
    with pytest.raises(ConnectionResetError):
        chat(server, "!reset times=1\n!say fine")
    assert said(chat(server, "!reset times=1\n!say fine"))["content"] == "fine"


def test_chat_completions_as_a_stream(server: MockLlm) -> None:
    script = '!reason hm\n!tool t {"a": 1}\n!usage 3 2\n!say b c'
    *chunks, last, done = chat(server, script, stream=True, stream_options={"include_usage": True}).events
    assert (done, last["choices"], last["usage"]["total_tokens"] > 0) == ("[DONE]", [], True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "hm"
    parts = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert (parts[0]["id"].startswith("call_"), parts[0]["function"]["name"]) == (True, "t")
    assert "".join(part["function"].get("arguments", "") for part in parts) == '{"a": 1}'
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "tool_calls"
    plain = chat(server, script, *answered(""), stream=True).events
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in plain[:-1]) == "b c"


def test_responses(server: MockLlm) -> None:
    script = '!reason hm\n!tool t {"a": 1}\n!also patch {"input": "*** Begin"}\n!say b c'
    tools = [{"type": "function", "name": "t"}, {"type": "custom", "name": "patch"}]
    first = send(server, RESPONSES, {"model": "m", "input": script, "tools": tools}).body
    assert [item["type"] for item in first["output"]] == ["reasoning", "function_call", "custom_tool_call"]
    assert (first["output"][1]["arguments"], first["output"][2]["input"]) == ('{"a": 1}', "*** Begin")
    results = [
        {"type": "function_call_output", "call_id": item.get("call_id"), "output": "ok"} for item in first["output"]
    ]
    items = [{"role": "user", "content": [{"type": "input_text", "text": script}]}, *first["output"], *results]
    body = {"model": "m", "instructions": "be brief", "input": items, "stream": True}
    events = send(server, RESPONSES, body).events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == "b c"
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "b c"


def test_a_tool_of_a_namespace_is_called_by_both_names(server: MockLlm) -> None:
    tools = [{"type": "namespace", "name": "mcp__calc", "tools": [{"type": "function", "name": "add"}]}]
    script = '!tool mcp__calc__add {"a": 1}'
    (call,) = send(server, RESPONSES, {"model": "m", "input": script, "tools": tools}).body["output"]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "mcp__calc", "add")
    (plain,) = send(server, RESPONSES, {"model": "m", "input": script, "tools": tools[:0]}).body["output"]
    assert ("namespace" in plain, plain["name"]) == (False, "mcp__calc__add")


def test_a_stored_response_cannot_be_continued(server: MockLlm) -> None:
    reply = send(server, RESPONSES, {"input": "!say x", "previous_response_id": "resp_1"})
    assert (reply.status, "previous_response_id" in reply.text) == (400, True)


def test_messages(server: MockLlm) -> None:
    script = '!reason hm\n!tool t {"a": 1}\n!say b c'
    turns: list[Any] = [{"role": "user", "content": [{"type": "text", "text": script}]}]
    first = send(server, MESSAGES, {"model": "m", "system": "s", "messages": turns}).body
    assert [block["type"] for block in first["content"]] == ["thinking", "tool_use"]
    assert (first["stop_reason"], first["content"][1]["input"]) == ("tool_use", {"a": 1})
    result = {"type": "tool_result", "tool_use_id": first["content"][1]["id"], "content": "ok"}
    reminder = {"type": "text", "text": "<system-reminder>be good</system-reminder>"}
    turns += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result, reminder]}]
    events = send(server, MESSAGES, {"model": "m", "messages": turns, "stream": True}).events
    assert [event["type"] for event in events if "delta" not in event["type"]] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_stop",
        "message_stop",
    ]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta["text"] for delta in deltas) == "b c"


def test_gemini(server: MockLlm) -> None:
    script = '!reason hm\n!tool t {"a": 1}\n!say b c'
    contents: list[Any] = [{"role": "user", "parts": [{"text": script}]}]
    first = send(server, GEMINI, {"contents": contents}).body["candidates"][0]
    call = first["content"]["parts"][1]["functionCall"]
    assert (first["finishReason"], call["name"], call["args"]) == ("STOP", "t", {"a": 1})
    result = {"functionResponse": {"id": call["id"], "name": "t", "response": {"output": "ok"}}}
    contents += [first["content"], {"role": "user", "parts": [result]}]
    as_list = send(server, GEMINI_STREAM, {"contents": contents}).body
    as_events = send(server, f"{GEMINI_STREAM}?alt=sse", {"contents": contents}).events
    for responses in (as_list, as_events):
        parts = [part for item in responses for part in item["candidates"][0]["content"]["parts"]]
        assert "".join(part["text"] for part in parts) == "b c"
        assert "usageMetadata" in responses[-1]


def test_counting_tokens(server: MockLlm) -> None:
    body = {"messages": [{"role": "user", "content": "x" * 40}]}
    assert send(server, f"{MESSAGES}/count_tokens?beta=true", body).body == {"input_tokens": 10}
    contents = [{"parts": [{"text": "x" * 40}]}]
    path = "/v1beta/models/m:countTokens"
    assert send(server, path, {"contents": contents}).body == {"totalTokens": 10}
    assert send(server, path, {"generateContentRequest": {"contents": contents}}).body == {"totalTokens": 10}


def test_models(server: MockLlm) -> None:
    assert send(server, "/v1/models", method="GET").body["data"][0]["id"] == "mock-model"
    assert send(server, "/v1beta/models", method="GET").body["models"][0]["name"] == "models/mock-model"


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/v1/embeddings"), ("GET", CHAT)])
def test_anything_else_is_not_found(server: MockLlm, method: str, path: str) -> None:
    assert send(server, path, {}, method=method).status == 404


@pytest.mark.parametrize("body", [b"{oops", b"[1]", b'"text"', b"\xff\xfe"])
def test_a_body_that_is_no_object(server: MockLlm, body: bytes) -> None:
    assert send(server, CHAT, body).status == 400


def test_compressed_and_chunked_requests(server: MockLlm) -> None:
    data = json.dumps({"messages": [{"role": "user", "content": "!say fine"}]}).encode()
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(data) + packer.flush()
    assert said(send(server, CHAT, packed, headers={"Content-Encoding": "gzip"}))["content"] == "fine"
    assert send(server, CHAT, b"no gzip", headers={"Content-Encoding": "gzip"}).status == 400
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=20)
    connection.request("POST", CHAT, iter([data[:10], data[10:]]), {}, encode_chunked=True)
    assert said(Reply(connection.getresponse()))["content"] == "fine"
    connection.close()


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer the-key"}, {"x-api-key": "the-key"}, {"api-key": "the-key"}]
)
def test_a_key_may_be_required(headers: Mapping[str, str]) -> None:
    with MockLlm(api_key="the-key") as server:
        body = {"messages": [{"role": "user", "content": "!say x"}]}
        assert send(server, CHAT, body, headers=headers).status == 200
        assert send(server, f"{GEMINI}?key=the-key", {"contents": []}).status == 200
        assert send(server, CHAT, body, headers={"Authorization": "Bearer other"}).status == 401
        assert send(server, MESSAGES, body).body["error"]["type"] == "authentication_error"


SECRETS = {
    "Authorization": "Bearer s3cret",
    "X-Api-Key": "s3cret",
    "Api-Key": "s3cret",
    "X-Goog-Api-Key": "s3cret",
    "X-Session-Token": "s3cret",
    "Cookie": "s3cret",
}


def test_the_log_has_one_line_per_request_without_credentials(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    body = {"messages": [{"role": "user", "content": "!say x"}, *answered("x")]}
    with MockLlm(log=log) as server:
        send(server, f"{CHAT}?key=s3cret&x=1", body, headers={**SECRETS, "X-Trial": "t-1"})
        send(server, "/nowhere", method="GET")
        assert server.requests == ()
    first, second = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    assert "s3cret" not in log.read_text(encoding="utf-8")
    assert (first["path"], first["body"], first["step"], first["status"]) == (f"{CHAT}?x=1", body, 1, 200)
    assert first["headers"]["x-trial"] == "t-1"
    assert (second["method"], second["path"], second["step"], second["status"]) == ("GET", "/nowhere", None, 404)


def test_requests_are_remembered(server: MockLlm) -> None:
    chat(server, "!say x")
    with pytest.raises(ConnectionResetError):
        chat(server, "!reset")
    assert [(request.step, request.status) for request in server.requests] == [(0, 200), (0, None)]


def test_many_conversations_at_once(server: MockLlm) -> None:
    found: dict[int, str] = {}

    def ask(number: int) -> None:
        found[number] = said(chat(server, f"!sleep 0.05\n!say answer {number}"))["content"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"answer {number}" for number in range(40)}


def test_stopping_ends_what_is_going_on_and_leaves_nothing() -> None:
    before = threading.active_count()
    ended: list[Exception] = []

    def ask(running: MockLlm) -> None:
        try:
            chat(running, "!sleep 60\n!say x")
        except (OSError, http.client.HTTPException) as error:
            ended.append(error)

    with MockLlm() as server:
        thread = threading.Thread(target=ask, args=(server,))
        thread.start()
        while not threading.active_count() >= before + 3:
            time.sleep(0.01)
        began = time.monotonic()
    thread.join(20)
    assert (len(ended), threading.active_count()) == (1, before)
    assert time.monotonic() - began < 15
    with pytest.raises(RuntimeError, match="inside 'with' only"):
        server.url  # noqa: B018  # looking it up is the test


def test_a_busy_port(server: MockLlm) -> None:
    with pytest.raises(OSError, match="in use"), MockLlm(port=int(server.url.rsplit(":", 1)[1])):
        pass
