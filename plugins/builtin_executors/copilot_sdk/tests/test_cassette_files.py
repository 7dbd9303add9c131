"""The file of a cassette, and what is taken out of the text in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally import ExecutorError
from vally.testing import executor_options, stimulus
from vally_executor_copilot_sdk.cassette import (
    Cassette,
    Exchange,
    Request,
    cassette_file,
    new_head,
    read_cassette,
    write_cassette,
)
from vally_executor_copilot_sdk.cassette_text import (
    Places,
    joined,
    request_hash,
    request_shape,
    shape_difference,
)
from vally_executor_copilot_sdk.config import CopilotConfig

HEAD = new_head({"type": "openai", "wireApi": "completions"}, "m", "1.0.102", "1.0.27")
STREAM = "text/event-stream; charset=utf-8"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def exchange(n: int = 0, **fields: Any) -> Exchange:
    facts = {
        "n": n,
        "agent": 0,
        "method": "POST",
        "path": "/v1/chat/completions",
        "request": Request(hash="h", shape={"path": "/v1/chat/completions", "roles": [], "tools": []}),
        "status": 200,
        "content_type": "application/json",
        "body": "{}",
        "duration_ms": 1,
    }
    return Exchange(**{**facts, **fields})


def places(root: Path) -> Places:
    return Places({"work": root / "trial" / "files", "trial": root / "trial"}, root / "trial", "the-trial-id")


@given(bodies=st.lists(TEXTS, max_size=4), agent=st.integers(0, 9), status=st.integers(100, 599))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[str], agent: int, status: int
) -> None:
    path = tmp_path_factory.mktemp("cassettes") / "deep" / "trial-0.jsonl"
    cassette = Cassette(
        HEAD, tuple(exchange(n, body=body, agent=agent, status=status) for n, body in enumerate(bodies))
    )
    write_cassette(path, cassette)
    assert read_cassette(path) == cassette
    assert [json.loads(line)["n"] for line in path.read_bytes().split(b"\n")[1:] if line] == list(range(len(bodies)))
    assert json.loads(path.read_bytes().split(b"\n")[0])["type"] == "cassette"


@given(data=st.binary(max_size=300))
def test_no_file_can_break_it(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("cassettes") / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(ExecutorError, match=r"x\.jsonl:\d+: ") as caught:
        read_cassette(path)
    assert caught.value.code == "cassette-invalid"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"version": 2}, ":1: version: "),
        ({"type": "tape"}, ":1: type: "),
        ({"more": 1}, ":1: more: "),
        (None, ":3: n: expected 1, found 5"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, change: dict[str, Any] | None, where: str) -> None:
    path = tmp_path / "x.jsonl"
    write_cassette(path, Cassette(HEAD, (exchange(0), exchange(5 if change is None else 1))))
    lines = path.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), **(change or {})})
    path.write_text("\n".join(lines))
    with pytest.raises(ExecutorError) as caught:
        read_cassette(path)
    assert where in caught.value.message


def test_a_cassette_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="make it with 'cassette: record'") as caught:
        read_cassette(tmp_path / "x.jsonl")
    assert caught.value.code == "cassette-miss"


def test_where_it_lies(tmp_path: Path) -> None:
    def place(item_id: str, name: str = "s", model: str = "m") -> str:
        options = executor_options(tmp_path, item_id=item_id, spec_dir=tmp_path)
        return (
            cassette_file("tapes", replace(stimulus("x"), name=name), options, model).relative_to(tmp_path).as_posix()
        )

    assert place("evals/eval.yaml::main::m::s::trial-2") == "tapes/eval.yaml/s/m/trial-2.jsonl"
    assert place("evals/eval.yaml::slow::m::s::trial-0") == "tapes/eval.yaml/s/slow-m/trial-0.jsonl"
    odd = [place("e.yaml::main::m::s::trial-0", name) for name in ("a b", "a/b", "../b", "a-b")]
    assert len(set(odd)) == 4
    assert not any(".." in path for path in odd)


@given(before=TEXTS, after=TEXTS)
def test_paths_come_back_as_those_of_another_trial(before: str, after: str) -> None:
    first, second = places(Path("/first/place")), places(Path("/second"))
    text = f"{before} /first/place/trial/files/a.txt /first/place/trial/copilot-0/home the-trial-id {after}"
    stored = first.without_paths(text)
    if "/first" not in before + after:
        assert "/first" not in stored
    assert second.with_paths(stored).count("/second/trial/files/a.txt") >= 1
    assert "/second/trial/copilot-" in second.with_paths(stored)


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "ä"])
def test_paths_that_json_would_write_otherwise_are_refused(name: str) -> None:
    with pytest.raises(ExecutorError, match="cassettes need paths of plain ASCII"):
        places(Path("/x") / name)


def test_what_changes_each_time_is_not_compared() -> None:
    def text(moment: str, key: str, prompt: str = "p") -> str:
        content = f"<current_datetime>{moment}</current_datetime> {prompt}"
        ident = f"msg_77d44102-23ac-410f-7048-1393{key * 8}"
        return json.dumps({"prompt_cache_key": key, "messages": [{"role": "user", "id": ident, "content": content}]})

    one = request_hash(text("2026-01-01T00:00:00Z", "a"))
    assert one == request_hash(text("2027-12-31T00:00:00Z", "b"))
    assert one != request_hash(text("2026-01-01T00:00:00Z", "a", "q"))


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "system"}, {"role": "user"}], "tools": [{"function": {"name": "bash"}}]},
        {"messages": [{"role": "system"}, {"role": "user"}], "tools": [{"name": "bash"}]},
        {"input": [{"role": "system"}, {"type": "user"}], "tools": [{"name": "bash"}]},
    ],
)
def test_the_shape(body: dict[str, Any]) -> None:
    shape = request_shape("/v1/x", json.dumps(body))
    assert shape == {"path": "/v1/x", "roles": ["system", "user"], "tools": ["bash"]}
    assert shape_difference(shape, shape) is None
    assert shape_difference(shape, {**shape, "tools": ["view"]}) == "tools view, recorded bash"


@given(text=TEXTS)
def test_a_body_of_any_text_has_a_shape(text: str) -> None:
    assert request_shape("/p", text)["path"] == "/p"
    assert len(request_hash(text)) == 64
    joined(text, STREAM)


def events(*data: Any) -> str:
    return "".join(f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n" for item in data)


FRAGMENTS: dict[str, Any] = {
    "completions-call": lambda part: {
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}}]
    },
    "completions-text": lambda part: {"choices": [{"index": 0, "delta": {"content": part}}]},
    "responses": lambda part: {"type": "response.output_text.delta", "item_id": "i", "delta": part},
    "anthropic-call": lambda part: {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": part},
    },
    "anthropic-text": lambda part: {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": part},
    },
}


@pytest.mark.parametrize("kind", FRAGMENTS)
@given(parts=st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_fragments_are_joined(kind: str, parts: list[str]) -> None:
    make = FRAGMENTS[kind]
    stream = events(*map(make, parts), "[DONE]")
    assert joined(stream, STREAM) == joined(events(make("".join(parts)), "[DONE]"), STREAM)
    assert joined(stream, "application/json") == stream


def test_fragments_of_two_calls_stay_apart() -> None:
    def call(index: int, text: str) -> Any:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": {"arguments": text}}]}}]}

    told = joined(events(call(0, "a"), call(0, "b"), call(1, "c"), call(0, "d")), STREAM)
    found = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
    arguments = [item["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] for item in found]
    assert arguments == ["ab", "c", "d"]


@pytest.mark.parametrize("cassette", ["record", "replay"])
def test_a_cassette_needs_a_provider(cassette: str) -> None:
    with pytest.raises(ValueError, match=f"'cassette: {cassette}' needs 'provider'"):
        CopilotConfig.model_validate({"cassette": cassette}, by_alias=True)


def test_a_replay_needs_no_key() -> None:
    provider = {"type": "openai", "baseUrl": "http://models.example/v1", "apiKeyEnv": "KEY"}
    for cassette, key in (("record", "KEY"), ("replay", None)):
        config = CopilotConfig.model_validate({"cassette": cassette, "provider": provider}, by_alias=True)
        assert config.provider is not None
        assert config.provider.api_key_env == key
