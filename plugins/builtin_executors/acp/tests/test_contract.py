"""The executor keeps the contract of executors, with an agent that follows a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import Case, executor_contract
from vally_executor_acp import plugin

(RECORD,) = plugin.vally_executors()
FAKE = Path(__file__).with_name("fake_agent.py")
STAY = "(setsid sleep 600 > /dev/null 2>&1 &) ; nohup sleep 600 > /dev/null 2>&1 &"
CALL = {"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Write", "kind": "edit", "rawInput": {"path": "a"}}
ENDED = {"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed"}


def agent(*steps: dict[str, object], **config: object) -> Callable[[Path], dict[str, object]]:
    def write(directory: Path) -> dict[str, object]:
        script = directory / "spec" / "script.json"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(json.dumps({"prompts": [steps]}))
        return {"command": [sys.executable, str(FAKE), str(script)], **config}

    return write


def refusal(status: int) -> Callable[[Path], dict[str, object]]:
    return agent({"error": {"code": -32603, "message": f"Internal error: API Error: {status} no"}})


AGENT = {
    "answer": agent({"text": "Answer to ${PROMPT}"}),
    "writes": agent({"update": CALL}, {"shell": "echo 1 > a"}, {"update": ENDED}, {"text": "Done."}),
    "until-stopped": agent({"shell": "sleep 600 &"}, {"sleep": 600}),
    "background": agent({"shell": STAY}, {"text": "Done."}),
    "secret": agent({"shell": 'test -n "$CONTRACT_API_KEY"'}, {"text": "Done."}, passEnv=["CONTRACT_API_KEY"]),
    "http-401": refusal(401),
    "http-429": refusal(429),
    "http-500": refusal(500),
}


@pytest.mark.parametrize("case", executor_contract(RECORD, {"command": ["unused"]}, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
