"""Answers of judges that are kept: what makes a question the same, and what may be used again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import (
    JudgeError,
    JudgeReply,
    JudgeRequest,
    JudgeSettings,
    ProviderConfig,
    Redactor,
    ToolSchema,
)
from vally.run.judge_cache import JudgeCache
from vally.run.judges import ItemJudge, JudgePool
from vally.testing import ScriptedJudge, plugin_host

TOOL = ToolSchema(name="submit", description="submit it", parameters={"type": "object", "properties": {}})
PROVIDER = ProviderConfig(type="fake", base_url="http://127.0.0.1/v1", api_key_env="KEY", headers={"x": "1"})


def request(**fields: Any) -> JudgeRequest:
    facts = {
        "model": "m",
        "reasoning_effort": "low",
        "system_message": "s",
        "user_message": "u",
        "tool": TOOL,
        **fields,
    }
    return JudgeRequest(**facts)


def key(tmp_path: Path, judge: str = "j", provider: ProviderConfig | None = PROVIDER, **fields: Any) -> str:
    return JudgeCache(tmp_path).key(judge, provider, request(**fields))


def evidence(tmp_path: Path, text: str) -> tuple[Path, ...]:
    path = tmp_path / "fresh" / "evidence.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return (path,)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "other"},
        {"reasoning_effort": None},
        {"system_message": "other"},
        {"user_message": "other"},
        {"tool": replace(TOOL, name="other")},
        {"tool": replace(TOOL, parameters={"type": "object"})},
        {"judge": "other"},
        {"provider": None},
        {"provider": replace(PROVIDER, base_url="http://127.0.0.2/v1")},
        {"provider": replace(PROVIDER, model="other")},
        {"provider": replace(PROVIDER, answer="schema")},
        {"provider": replace(PROVIDER, options={"path": "other"})},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_whatever_changes_the_answer_changes_the_key(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert key(tmp_path, **fields) != key(tmp_path)


def test_the_content_of_the_evidence_counts_and_not_its_place(tmp_path: Path) -> None:
    first = key(tmp_path, evidence_files=evidence(tmp_path, "a"))
    (tmp_path / "elsewhere").mkdir()
    assert key(tmp_path, evidence_files=evidence(tmp_path / "elsewhere", "a")) == first
    assert key(tmp_path, evidence_files=evidence(tmp_path, "b")) != first
    assert key(tmp_path) != first


def test_names_of_evidence_are_those_in_its_directory(tmp_path: Path) -> None:
    keys = []
    for place in ("one/a.txt", "one/b/a.txt", "two/a.txt"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("same")
        keys.append(key(tmp_path, evidence_dir=tmp_path / place.split("/")[0], evidence_files=(path,)))
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    "other",
    [
        replace(PROVIDER, api_key_env="OTHER"),
        replace(PROVIDER, api_key="secret"),
        replace(PROVIDER, bearer_token="secret"),
        replace(PROVIDER, headers={"x": "2"}),
    ],
)
def test_credentials_are_no_part_of_the_key(tmp_path: Path, other: ProviderConfig) -> None:
    assert key(tmp_path, provider=other) == key(tmp_path)
    assert key(tmp_path, seed=1, timeout_s=9) == key(tmp_path)


def client(tmp_path: Path, judge: ScriptedJudge, **fields: Any) -> ItemJudge:
    cache = JudgeCache(tmp_path / "cache", **fields)
    return JudgePool(plugin_host(judge.record()), cache=cache).client(JudgeSettings(model="m"))


def ask(judge: ItemJudge, **fields: Any) -> JudgeReply:
    return anyio.run(judge.judge, request(**fields))


def files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_a_valid_answer_is_used_again_and_costs_nothing(tmp_path: Path) -> None:
    scripted = ScriptedJudge([{"score": 1}])
    first, second = client(tmp_path, scripted), client(tmp_path, scripted)
    replies = [ask(first), ask(first), ask(second)]
    assert [(dict(reply.args), reply.cache) for reply in replies] == [
        ({"score": 1}, "miss"),
        ({"score": 1}, "hit"),
        ({"score": 1}, "hit"),
    ]
    usage = first.usage()
    assert usage is not None
    assert (usage.call_count, usage.total_tokens) == (1, 15)
    assert second.usage() is None
    assert len(files(tmp_path)) == 1


def test_without_a_cache_replies_say_nothing_of_one() -> None:
    pool = JudgePool(plugin_host(ScriptedJudge({"score": 1}).record()))
    assert ask(pool.client(JudgeSettings(model="m"))).cache is None


def test_failures_are_not_kept(tmp_path: Path) -> None:
    scripted = ScriptedJudge([JudgeError("no", kind="transport"), {"score": 1}])
    judge = client(tmp_path, scripted)
    with pytest.raises(JudgeError):
        ask(judge)
    assert files(tmp_path) == []
    assert ask(judge).cache == "miss"


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[1]", b"{}", b'{"version": 9, "args": {}}', b"[" * 9999])
def test_an_entry_that_cannot_be_read_is_a_miss(tmp_path: Path, content: bytes) -> None:
    judge = client(tmp_path, ScriptedJudge({"score": 1}))
    ask(judge)
    files(tmp_path)[0].write_bytes(content)
    assert (ask(judge).cache, ask(judge).cache) == ("miss", "hit")


def test_an_entry_that_is_no_longer_valid_is_a_miss(tmp_path: Path) -> None:
    def check(args: Mapping[str, object]) -> str | None:
        return None if args.get("score") == 2 else "must be 2"

    scripted = ScriptedJudge([{"score": 1}, {"score": 2}])
    judge = client(tmp_path, scripted)
    ask(judge)
    assert dict(ask(judge, check=check).args) == {"score": 2}


def test_known_secrets_are_not_kept(tmp_path: Path) -> None:
    redactor = Redactor({"SOME_TOKEN": "s3cret-value"})
    scripted = ScriptedJudge({"reasoning": "it printed s3cret-value"})
    judge = client(tmp_path, scripted, redact=redactor.value)
    assert ask(judge).args == {"reasoning": "it printed s3cret-value"}
    (path,) = files(tmp_path)
    assert json.loads(path.read_text())["args"] == {"reasoning": "it printed <redacted:SOME_TOKEN>"}
    assert path.stat().st_mode & 0o077 == 0


def test_a_directory_that_cannot_be_written_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("a file")
    judge = client(tmp_path, ScriptedJudge({"score": 1}))
    assert [ask(judge).cache, ask(judge, user_message="other").cache] == ["miss", "miss"]
    assert [record.message.split(":")[0] for record in caplog.records] == ["judge cache"]


def test_a_judge_that_is_not_there(tmp_path: Path) -> None:
    pool = JudgePool(plugin_host(), cache=JudgeCache(tmp_path))
    with pytest.raises(JudgeError) as caught:
        ask(pool.client(JudgeSettings(model="m")))
    assert caught.value.kind == "unavailable"
