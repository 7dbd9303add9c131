"""The executor keeps the contract of executors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import Case, executor_contract
from vally_executor_mock import plugin

(RECORD,) = plugin.vally_executors()


def fixture(**content: object) -> Callable[[Path], dict[str, object]]:
    """Make the executor play this fixture."""

    def write(directory: Path) -> dict[str, object]:
        folder = directory / "spec" / "fixtures"
        folder.mkdir(parents=True)
        (folder / "stimulus.json").write_text(json.dumps(content))
        return {"fixtureDir": "fixtures"}

    return write


def error(code: str, retryable: bool) -> Callable[[Path], dict[str, object]]:
    return fixture(error={"message": "refused", "code": code, "retryable": retryable})


CALL = {"type": "tool_call", "timestamp": "2026-01-01T00:00:00.000Z", "data": {"toolName": "write", "toolCallId": "1"}}
RESULT = {**CALL, "type": "tool_result", "data": {**CALL["data"], "success": True}}
END = {**CALL, "type": "turn_end", "data": {"turnId": "0"}}
AGENT = {
    "until-stopped": fixture(delayMs=600_000),
    "writes": fixture(files={"made.txt": "made\n"}, events=[CALL, RESULT, END]),
    "http-401": error("provider-auth", False),
    "http-429": error("provider-rate-limit", True),
    "http-500": error("provider-error", True),
}


@pytest.mark.parametrize("case", executor_contract(RECORD, {}, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
