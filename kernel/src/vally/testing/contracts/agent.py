"""The agent of the contract of backends: all it does stands in its config, all it sees it says.

So it works for backends that run it in this process as well as for those that make it anew somewhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import ExecutorError
from vally.model.config import CamelConfig
from vally.records import Capabilities, ExecutorSpec
from vally.testing.executors import ScriptedExecutor, Wait

if TYPE_CHECKING:
    from vally.model.evalspec import Stimulus
    from vally.model.trajectory import Trajectory
    from vally.run.inputs import ExecutorOptions
    from vally.run.trial import TrialOutcome

NAME = "contract-agent"

LOOK = {"look": True}
"""Say where the agent is and which files it finds there."""

COMMIT = {"commit": True}
"""Commit everything to the repository of the workspace, and check out another branch."""


def say(text: str) -> dict[str, Any]:
    """A step: an assistant message."""
    return {"say": text}


def write(files: Mapping[str, str]) -> dict[str, Any]:
    """A step: files by path."""
    return {"write": dict(files)}


def wait(seconds: float) -> dict[str, Any]:
    """A step: work that takes this long, unless the agent is stopped."""
    return {"wait": seconds}


def crash(text: str) -> dict[str, Any]:
    """A step: an exception that no executor should raise."""
    return {"crash": text}


def fail(message: str, **facts: Any) -> dict[str, Any]:
    """A step: an `ExecutorError`; `facts` are its arguments."""
    return {"fail": {"message": message, **facts}}


class AgentConfig(CamelConfig):
    """One list of steps per turn."""

    turns: list[list[dict[str, Any]]]


class ContractAgent:
    """Follows the steps of its config."""

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Do what the config says."""
        config: Any = options.executor_config
        turns = [[_step(step) for step in steps] for steps in config.turns]
        return await ScriptedExecutor(turns).execute(stimulus, options)

    async def shutdown(self) -> None:
        """Nothing is open."""


RECORD = ExecutorSpec(
    name=NAME,
    summary="does what its config says",
    factory=f"{__name__}:ContractAgent",
    config=f"{__name__}:AgentConfig",
    capabilities=Capabilities(**dict.fromkeys(Capabilities.__dataclass_fields__, True)),
)


def config_of(script: Sequence[Any]) -> dict[str, Any]:
    """The config for the steps of one turn, or for lists of steps of several."""
    several = bool(script) and all(isinstance(part, list) for part in script)
    return {"turns": [list(part) for part in script] if several else [list(script)]}


def seen(outcome: TrialOutcome) -> dict[str, Any]:
    """What the agent of a trial said in its `LOOK`."""
    assert outcome.trajectory is not None, f"there is no trajectory: {outcome.error}"
    for event in outcome.trajectory.events:
        text = event.data.get("content")
        if event.type == "assistant_message" and isinstance(text, str) and text.startswith("{"):
            found: dict[str, Any] = json.loads(text)
            return found
    raise AssertionError("the agent did not look")


def _step(step: Mapping[str, Any]) -> Any:
    ((word, value),) = step.items()
    if word == "wait":
        return Wait(value)
    if word == "crash":
        return RuntimeError(value)
    if word == "fail":
        facts = dict(value)
        return ExecutorError(facts.pop("message"), **facts)
    return {"look": _look, "commit": _commit}.get(word, value)


def _look(_: Stimulus, options: ExecutorOptions) -> str:
    work = options.work_dir
    facts = {
        "workDir": str(work),
        "trialDir": str(options.trial_dir),
        "files": sorted(path.relative_to(work).as_posix() for path in Path(work).rglob("*")),
    }
    return json.dumps(facts)


async def _commit(_: Stimulus, options: ExecutorOptions) -> None:
    identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com", "-c", "commit.gpgsign=false"]
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "agent"], ["checkout", "--quiet", "-b", "own"]):
        done = await options.runner.run(["git", *identity, *words], cwd=options.work_dir, env=options.env)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace"))
