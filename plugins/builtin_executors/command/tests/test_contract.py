"""The executor keeps the contract of executors, with a script as its agent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import Case, executor_contract
from vally_executor_command import plugin

(RECORD,) = plugin.vally_executors()
HEAD = "import os, subprocess, sys, time\n"
STAY = 'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)\n'
STREAMS = "stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True"


def script(body: str, **keys: object) -> Callable[[Path], dict[str, object]]:
    """Make the agent a script with this body; its argument is the prompt."""

    def write(directory: Path) -> dict[str, object]:
        path = directory / "spec" / "agent.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + body)
        command = [sys.executable, str(path), "{prompt}"]
        return {"command": command, "continueCommand": command, **keys}

    return write


def refusal(status: int) -> Callable[[Path], dict[str, object]]:
    return script(f"sys.exit('API error, status: {status}')")


AGENT = {
    "answer": script("print('answer to', sys.argv[1])"),
    "until-stopped": script("time.sleep(600)"),
    "background": script(STAY.replace("start_new_session=True", STREAMS) + "print('done')"),
    "secret": script("print(len(os.environ['CONTRACT_API_KEY']))", passEnv=["CONTRACT_API_KEY"]),
    "http-401": refusal(401),
    "http-429": refusal(429),
    "http-500": refusal(500),
}


@pytest.mark.parametrize("case", executor_contract(RECORD, {}, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
