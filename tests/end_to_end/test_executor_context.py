"""What executors are told of a run, and what they may say about a trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vally import Capabilities, ExecutorOptions, ExecutorSpec, RunContext, Stimulus, Trajectory, TrajectoryBuilder
from vally.testing import run_cli


class Curious:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.contexts: list[RunContext] = []
        self.shared: list[Path | None] = []

    def configure(self, context: RunContext) -> None:
        self.contexts.append(context)

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        self.shared.append(options.shared_dir)
        assert options.shared_dir is not None
        assert options.shared_dir.is_dir()
        options.warn("the agent is tired")
        builder = TrajectoryBuilder(stimulus, options, executor="curious")
        builder.user_message(stimulus.prompt)
        builder.turn_start()
        builder.assistant_message("hello")
        builder.turn_end()
        return builder.finish("completed")

    async def shutdown(self) -> None:
        assert all(path is not None and path.is_dir() for path in self.shared), "the directory outlives executors"


def test_an_executor_knows_its_run_and_warns_on_the_record(tmp_path: Path) -> None:
    agent = Curious()
    record = ExecutorSpec(name="curious", summary="asks", factory=lambda: agent, capabilities=Capabilities())
    stimuli = [{"name": name, "prompt": "p", "graders": [{"type": "completed"}]} for name in "ab"]
    spec = {"name": "e", "defaults": {"executor": "curious"}, "stimuli": stimuli}
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    run = run_cli(["eval", "-e", "eval.yaml", "--run-id", "mine"], cwd=tmp_path, env={"A": "b"}, plugins=[record])
    assert run.exit_code == 0, run.stderr
    (context,) = agent.contexts
    assert (context.run_id, context.project_root, context.process_env["A"]) == ("mine", tmp_path, "b")
    assert len(set(agent.shared)) == 1
    assert run.run_dir is not None
    lines = (run.run_dir / "results.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines if '"trial-result"' in line]
    assert [trial["warnings"] for trial in trials] == [["the agent is tired"]] * 2
    assert agent.shared[0] is not None
    assert not agent.shared[0].exists()


class Broken(Curious):
    """Has one method that goes wrong; an exception is raised, a coroutine function takes its place."""

    def __init__(self, method: str, answer: object) -> None:
        super().__init__()

        def call(*_: object) -> object:
            if isinstance(answer, BaseException):
                raise answer
            return answer

        async def later(*_: object) -> object:
            return answer

        later.__name__ = method
        setattr(self, method, later if answer == "later" else call)


@pytest.mark.parametrize(
    ("method", "answer", "told"),
    [
        ("configure", RuntimeError("no server"), "RuntimeError: no server"),
        ("configure", SystemExit(3), "SystemExit: 3"),
        ("configure", "later", "TypeError: configure must not be async"),
        ("validate_config", SystemExit(3), "SystemExit: 3"),
        ("validate_config", "later", "validate_config must not be async"),
        ("check_network", ValueError("no route"), "ValueError: no route"),
        ("capabilities_for", {"mcp": True}, "TypeError: capabilities_for returned dict, not Capabilities"),
        ("capabilities_for", "later", "TypeError: capabilities_for must not be async"),
    ],
)
def test_what_goes_wrong_before_a_run_names_the_executor(
    tmp_path: Path, method: str, answer: object, told: str
) -> None:
    record = ExecutorSpec(name="curious", summary="asks", factory=lambda: Broken(method, answer))
    spec = {"name": "e", "defaults": {"executor": "curious"}, "stimuli": [{"name": "a", "prompt": "p"}]}
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    run = run_cli(["eval", "-e", "eval.yaml"], cwd=tmp_path, plugins=[record])
    assert run.exit_code == 1
    assert f"executor 'curious': {told}" in run.stderr
    assert "internal error" not in run.stderr
    assert run.run_dir is None
