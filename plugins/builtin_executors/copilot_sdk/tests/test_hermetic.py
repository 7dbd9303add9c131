"""Trials whose runner gives the runtime no network: what is refused, and how model calls leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from endpoints import nobody

from vally import ExecutorError, McpServer, run_agent
from vally.testing import MockLlm, stimulus

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]
DIALECTS = ["completions", "responses", "anthropic", "azure"]
SCRIPT = 'x\n!tool create {"path": "@WORK/made.txt", "file_text": "made"}\n!usage 100 5 40\n!say It is made.'


async def hermetic(run: Any, *prompts: str, **fields: Any) -> Any:
    """A trial whose runner says that there is no network; here there is one, but the executor must not know."""
    options = run.options(**fields)
    options.runner.network = "none"
    told = [text.replace("@WORK", str(run.work)) for text in prompts]
    try:
        return await run_agent(run.executor, stimulus(*told), options, blocking=False)
    finally:
        await options.runner.kill_all()


def endpoint(provider: Any, dialect: str) -> dict[str, Any]:
    if dialect == "azure":
        return {**provider(), "type": "azure", "apiVersion": "2024-10-21"}
    made: dict[str, Any] = provider(dialect)
    return made


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_each_dialect(run: Any, provider: Any, dialect: str, streaming: bool) -> None:
    own = {**endpoint(provider, dialect), "headers": {"X-Team": "canary-of-the-header"}}
    with MockLlm(api_key="mock-key-4711") as llm:
        own["baseUrl"] = llm.url if dialect == "anthropic" else f"{llm.url}/v1"
        trajectory = await hermetic(run, SCRIPT, config={"provider": own, "streaming": streaming})
    assert trajectory.output == "It is made."
    assert (run.work / "made.txt").read_text() == "made"
    assert trajectory.metrics.token_usage.input_tokens >= 100
    assert len(llm.requests) == 2
    for request in llm.requests:
        assert request.headers["x-team"] == "canary-of-the-header"
        assert "placeholder" not in json.dumps([dict(request.headers), request.body])
        assert not any("model.invalid" in value for value in request.headers.values())


async def test_the_runtime_has_neither_key_nor_host(run: Any, provider: Any, llm: MockLlm) -> None:
    seen: list[Any] = []
    choose = run.executor._chooser.choose

    def chosen(*args: Any) -> Any:
        seen.append(choose(*args))
        return seen[-1]

    run.executor._chooser.choose = chosen
    await hermetic(run, SCRIPT, config={"provider": provider(headers={"X-Team": "canary-of-the-header"})})
    told = f"{seen[0].access.provider} {seen[0].make().env}"
    assert "https://model.invalid/v1" in told
    for secret in ("mock-key-4711", "canary-of-the-header", llm.url):
        assert secret not in told
    for path in run.directory.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"mock-key-4711" not in content
            assert llm.url.encode() not in content


async def test_clients_are_shared_with_nobody(run: Any) -> None:
    await hermetic(run, "x\n!say y")
    assert run.executor.pool.clients == ()


@pytest.mark.parametrize(
    ("line", "code", "retryable"),
    [("!fail 401", "provider-auth", False), ("!fail 500 retry-after=1", "provider-error", True)],
)
async def test_refusals_of_the_endpoint(run: Any, line: str, code: str, retryable: bool) -> None:
    with pytest.raises(ExecutorError) as caught:
        await hermetic(run, f"x\n{line}")
    assert (caught.value.code, caught.value.retryable) == (code, retryable)


async def test_an_error_names_the_endpoint_as_its_user_does(run: Any, llm: MockLlm) -> None:
    with pytest.raises(ExecutorError, match="Authentication failed") as caught:
        await hermetic(run, "x\n!fail 401")
    assert f"{llm.url}/v1" in caught.value.message
    assert "model.invalid" not in caught.value.message


async def test_no_endpoint(run: Any, provider: Any) -> None:
    with nobody() as url:
        own = {**provider(), "baseUrl": f"{url}/v1"}
        with pytest.raises(ExecutorError, match="the model endpoint does not answer") as caught:
            await hermetic(run, "x\n!say y", config={"provider": own})
    assert (caught.value.code, caught.value.retryable) == ("provider-error", True)


async def test_a_stop_ends_a_call_that_is_passed_on(run: Any) -> None:
    with anyio.fail_after(60):
        trajectory = await hermetic(run, "x\n!sleep 600\n!say late", max_agent_duration_ms=2000)
    assert trajectory.end_reason == "agent_timeout"


async def test_a_cassette_is_the_same_with_and_without_network(
    run: Any, llm: MockLlm, make_runs: Any, tmp_path: Path
) -> None:
    tapes = {"cassetteDir": str(tmp_path / "cassettes"), "cassetteMatch": "strict"}
    recorded = await hermetic(run, SCRIPT, config={**tapes, "cassette": "record"})
    (tape,) = (tmp_path / "cassettes").rglob("*.jsonl")
    assert "mock-key-4711" not in tape.read_text()
    asked = len(llm.requests)
    for place, network in (("second", "none"), ("third", "host")):
        (tmp_path / place / "work").mkdir(parents=True)
        runs = make_runs(tmp_path / place, llm)
        config = {**tapes, "cassette": "replay"}
        script = SCRIPT.replace("@WORK", str(runs.work))
        played = await (hermetic(runs, script, config=config) if network == "none" else runs(script, config=config))
        await runs.executor.shutdown()
        assert played.output == recorded.output
        assert (runs.work / "made.txt").read_text() == "made"
    assert len(llm.requests) == asked


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"config": {"provider": None}}, r"GitHub authentication needs .*network 'none'; name .*'provider'"),
        (
            {"mcp_servers": {"far": McpServer(name="far", type="http", url="http://127.0.0.1:9")}},
            r"MCP server 'far' of type 'http' needs",
        ),
        (
            {"mcp_servers": {"far": McpServer(name="far", type="sse", url="http://127.0.0.1:9")}},
            r"MCP server 'far' of type 'sse' needs",
        ),
        ({"process_env": {"EVALUATE_USE_HOST_COPILOT_HOME": "1"}}, r"own Copilot home needs"),
    ],
    ids=["login", "http", "sse", "home"],
)
async def test_what_is_refused(run: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ExecutorError, match=rf"{message}.*--backend-args network=host") as caught:
        await hermetic(run, "x", **fields)
    assert caught.value.code == "unsupported-option"
