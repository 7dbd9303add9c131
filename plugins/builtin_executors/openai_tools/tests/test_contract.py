"""The executor keeps the contract of executors, with models that follow a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from endpoints import FixedEndpoint

from vally.testing import Case, executor_contract
from vally_executor_openai_tools import plugin

(RECORD,) = plugin.vally_executors()
STACK = ExitStack()
LEAVE = "setsid sleep 600 > /dev/null 2>&1 & (nohup sleep 600 > /dev/null 2>&1 &) ; echo left"


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    with STACK:
        yield


def endpoint(*messages: dict[str, object], status: int = 200, **keys: object) -> Callable[[Path], dict[str, object]]:
    """An endpoint of its own for each case: it gives these messages in order, and the last one again and again."""

    def start(_: Path) -> dict[str, object]:
        server = STACK.enter_context(FixedEndpoint())
        for message in messages:
            server.give({"choices": [{"message": message}]}, status=status)
        return {"provider": {"type": "openai", "baseUrl": server.url, "model": "scripted", **keys}, "retries": 0}

    return start


def bash(command: str) -> dict[str, object]:
    function = {"name": "bash", "arguments": f'{{"command": "{command}"}}'}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}


DONE = {"content": "Done."}
AGENT = {
    "answer": endpoint(DONE),
    "writes": endpoint(bash("echo 1 > a.txt"), DONE),
    "until-stopped": endpoint(bash("sleep 600"), DONE),
    "background": endpoint(bash(LEAVE), DONE),
    "secret": endpoint(bash("env"), DONE, apiKeyEnv="CONTRACT_API_KEY"),
    "http-401": endpoint(DONE, status=401),
    "http-429": endpoint(DONE, status=429),
    "http-500": endpoint(DONE, status=500),
}
SMALLEST = {"provider": {"type": "openai", "baseUrl": "http://127.0.0.1:9", "model": "scripted"}}


@pytest.mark.parametrize("case", executor_contract(RECORD, SMALLEST, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
