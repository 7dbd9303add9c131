"""Record what the real agents write, for the tests of the parsers: `python record.py [AGENT...]`.

Each agent is run against the scripted model. Its output is kept per turn in `streams/<agent>-<version>-<scenario>-
<turn>.jsonl`, without paths of this machine, and what the parser makes of it beside it as `.golden.json`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import anyio

from vally import ExecutorError, LocalProcessRunner, run_agent
from vally.testing import MockLlm, executor_options, stimulus
from vally_executor_command import session
from vally_executor_command.config import CommandConfig
from vally_executor_command.dialects import DIALECTS, ParsedTurn, TurnOutput
from vally_executor_command.executor import CommandExecutor

sys.path.insert(0, str(Path(__file__).parents[4] / "tests" / "support"))
import agent_scenarios as scenarios
import agents
from recorded_streams import STREAMS, golden

Scenario = Callable[[str, str], tuple[str, ...]]
SCENARIOS: dict[str, tuple[Scenario, tuple[str, ...]]] = {
    "turns": (scenarios.two_turns, scenarios.AGENTS),
    "refused": (scenarios.refused, scenarios.AGENTS),
    "sub-agent": (scenarios.with_sub_agent, ("claude", "copilot")),
}
KEY = "recording-key-123456"


def main(names: list[str]) -> None:
    """Record all scenarios of the agents."""
    for agent in names or scenarios.AGENTS:
        for name, (scenario, known) in SCENARIOS.items():
            if agent in known:
                record(agent, name, scenario)


def record(agent: str, name: str, scenario: Scenario) -> None:
    """Record one scenario."""
    installed = agents.install(agent)
    outputs: list[TurnOutput] = []

    def keep(output: TurnOutput) -> ParsedTurn:
        outputs.append(output)
        return DIALECTS[agent](output)

    with tempfile.TemporaryDirectory() as place, MockLlm(api_key=KEY) as server:
        root = Path(place).resolve()
        with mock.patch.object(session, "DIALECTS", {agent: keep}):
            anyio.run(_run, agent, root, server.url, installed, scenario(agent, str(root / "work" / "hello.txt")))
        scrub = _scrubber(root, installed.folder, server.url)
    for turn, output in enumerate(outputs):
        stem = f"{agent}-{installed.version}-{name}-{turn}"
        STREAMS.mkdir(exist_ok=True)
        (STREAMS / f"{stem}.jsonl").write_text(scrub(output.text))
        if output.usage:
            (STREAMS / f"{stem}.usage.json").write_text(scrub(output.usage))
        (STREAMS / f"{stem}.golden.json").write_text(golden(stem))
        print(stem)


async def _run(agent: str, root: Path, url: str, installed: agents.Agent, turns: tuple[str, ...]) -> None:
    caches = {"XDG_CACHE_HOME": str(installed.folder / "cache")}
    path = f"{installed.program.parent}{os.pathsep}{os.environ['PATH']}"
    environ = {"SCENARIO_API_KEY": KEY, "PATH": path, **caches}
    parsed = CommandConfig.model_validate(scenarios.config(agent, url))
    options = executor_options(root, process_env=environ, executor_config=parsed, model="mock-model")
    assert isinstance(options.runner, LocalProcessRunner)
    try:
        await run_agent(CommandExecutor(), stimulus(*turns), options, blocking=False)
    except ExecutorError as error:
        print(f"{agent}: {error.code}: {error.message}")
    finally:
        await options.runner.kill_all()


def _scrubber(root: Path, folder: Path, url: str) -> Callable[[str], str]:
    known = {
        str(folder): "/agent",
        f"{root}/work": "/project",
        f"{root}/trial": "/trial",
        str(root): "/root",
        url: "URL",
    }
    # Claude Code names a directory after the workspace.
    known |= {re.sub(r"[^A-Za-z0-9]", "-", place): re.sub(r"\W", "-", new) for place, new in list(known.items())}

    def scrub(text: str) -> str:
        for place, new in known.items():
            text = text.replace(place, new).replace(json.dumps(place)[1:-1], new)
        return text

    return scrub


if __name__ == "__main__":
    main(sys.argv[1:])
