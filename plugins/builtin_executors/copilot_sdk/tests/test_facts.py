"""Skills and MCP servers, as the runtime tells of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError, McpServer, Skill
from vally_executor_copilot_sdk import facts as module
from vally_executor_copilot_sdk.facts import SessionFacts

pytestmark = pytest.mark.anyio


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., SessionFacts]:
    def facts(*, skills: tuple[str, ...] = (), warn: Any = None, **servers: int) -> SessionFacts:
        offered = [
            Skill(name=name, description="", path=tmp_path / name / "SKILL.md", raw_content="", frontmatter={})
            for name in skills
        ]
        known = {
            name: McpServer(name=name, type="stdio", command="x", timeout_ms=limit) for name, limit in servers.items()
        }
        return SessionFacts(known, offered, warn or (lambda text: pytest.fail(text)))

    return facts


def server(name: str, status: str, **data: Any) -> dict[str, Any]:
    told = {"serverName": name, "status": status, **data}
    return {"type": "session.mcp_server_status_changed", "ephemeral": True, "data": told}


def loaded(tmp_path: Path, *names: str, **enabled: bool) -> dict[str, Any]:
    skills = [
        {"name": name, "path": str(tmp_path / name / "SKILL.md"), "enabled": enabled.get(name, True)} for name in names
    ]
    return {"type": "session.skills_loaded", "ephemeral": True, "data": {"skills": skills}}


async def test_ready_when_all_servers_are_connected(make: Callable[..., SessionFacts]) -> None:
    facts = make(a=60_000, b=60_000)
    with anyio.move_on_after(0.01) as scope:
        await facts.wait_ready()
    assert scope.cancelled_caught
    facts.feed(server("a", "pending"))
    facts.feed(server("a", "connected"))
    facts.feed(server("b", "connected"))
    await facts.wait_ready()
    with anyio.move_on_after(0.01) as scope:
        await facts.wait_mcp_failure()
    assert scope.cancelled_caught


@pytest.mark.parametrize("status", ["failed", "needs-auth", "disabled"])
async def test_a_server_that_cannot_be_used(make: Callable[..., SessionFacts], status: str) -> None:
    facts = make(a=60_000)
    facts.feed(server("other", "failed"))
    facts.feed(server("a", status, error="exit code 3; last stderr: " + "x" * 3000 + " boom"))
    error = await facts.wait_mcp_failure()
    assert (error.code, error.retryable) == ("mcp-server-failed", False)
    assert error.message.startswith("MCP server 'a' failed: ")
    assert error.message.endswith("boom")
    assert len(error.message) < 2200


async def test_a_server_that_is_late(make: Callable[..., SessionFacts]) -> None:
    facts = make(a=10, b=60_000)
    error = await facts.wait_mcp_failure()
    assert error.message == "MCP server 'a' failed: it did not come up within 0.01s"


async def test_a_server_that_ends_after_it_was_there(make: Callable[..., SessionFacts]) -> None:
    said: list[str] = []
    facts = make(a=60_000, warn=said.append)
    facts.feed(server("a", "connected"))
    facts.feed(server("a", "failed", error="gone\nand more"))
    with anyio.move_on_after(0.01) as scope:
        await facts.wait_mcp_failure()
    assert scope.cancelled_caught
    assert said == ["MCP server 'a' ended while the agent worked: gone"]


async def test_skills_that_were_loaded(make: Callable[..., SessionFacts], tmp_path: Path) -> None:
    facts = make(skills=("b", "a"))
    facts.feed(loaded(tmp_path, "a", "b", "own"))
    await facts.wait_ready()
    assert (facts.skill_names, facts.other_skills) == (["a", "b"], ["own"])


async def test_skills_that_were_not(
    make: Callable[..., SessionFacts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SKILLS_LIMIT_S", 0.01)
    facts = make(skills=("a", "b"))
    with pytest.raises(ExecutorError, match="skill 'a' was not loaded") as caught:
        await facts.wait_ready()
    assert caught.value.code == "skill-not-loaded"
    facts.feed(loaded(tmp_path, "a"))
    with pytest.raises(ExecutorError, match="skill 'b' was not loaded: the agent did not take it"):
        await facts.wait_ready()
    facts.feed(loaded(tmp_path, "a", "b", b=False))
    with pytest.raises(ExecutorError, match="skill 'b' was not loaded: it is disabled"):
        await facts.wait_ready()


def test_other_facts(make: Callable[..., SessionFacts]) -> None:
    facts = make()
    facts.feed({"type": "session.start", "data": {"selectedModel": "m"}})
    facts.feed({"type": "assistant.turn_retry", "data": {}})
    facts.feed({"type": "model.call_failure", "data": {"failureKind": "transport"}})
    assert (facts.model, facts.model_retries, facts.transport_failed) == ("m", 1, True)
    facts.feed({"type": "assistant.usage", "agentId": "sub", "data": {"finishReason": "length"}})
    assert (facts.transport_failed, facts.finish_reason) == (False, None)
    facts.feed({"type": "assistant.usage", "data": {"finishReason": "stop"}})
    assert facts.finish_reason == "stop"
