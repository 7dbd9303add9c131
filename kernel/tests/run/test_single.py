"""Running one stimulus as a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError, ExecutorOptions, PluginHost, Stimulus, VallyError, arun_eval, run_eval
from vally.testing import ScriptedExecutor, plugin_host, stimulus


class Watched(ScriptedExecutor):
    """Also notes the clean-up."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.cleaned: list[tuple[str, bool]] = []

    async def cleanup(self, trial_id: str, *, preserve_workspace: bool) -> None:
        self.cleaned.append((trial_id, preserve_workspace))


def test_the_agent_works_in_the_given_directory(tmp_path: Path) -> None:
    executor = Watched([{"a.txt": "text"}, "done"])
    trajectory, cleanup = run_eval(stimulus(), executor=executor, work_dir=tmp_path, options={"model": "m", "seed": 7})
    given = executor.options[0]
    assert (trajectory.output, trajectory.end_reason) == ("done", "completed")
    assert (tmp_path / "a.txt").read_text() == "text"
    assert (given.model, given.seed, given.work_dir) == ("m", 7, tmp_path.resolve())
    assert given.trial_dir.is_dir()
    assert executor.cleaned == []
    cleanup()
    cleanup()
    assert executor.cleaned == [(given.trial_id, True)]
    assert not given.trial_dir.exists()
    assert (tmp_path / "a.txt").exists()
    assert executor.shutdowns == 0


def test_an_executor_named_is_made_and_shut_down(tmp_path: Path) -> None:
    executor = Watched(["done"])
    host = plugin_host(executor.record("mine"))
    trajectory, cleanup = run_eval(stimulus(), executor="mine", work_dir=tmp_path, options={"host": host})
    cleanup()
    assert trajectory.output == "done"
    assert executor.shutdowns == 1


def test_processes_of_the_agent_end_with_the_clean_up(tmp_path: Path) -> None:
    async def start(_: Stimulus, options: ExecutorOptions) -> str:
        process = await options.runner.start(["sleep", "600"])
        return str(process.pid)

    trajectory, cleanup = run_eval(stimulus(), executor=ScriptedExecutor([start]), work_dir=tmp_path)
    pid = int(trajectory.output)
    assert Path(f"/proc/{pid}").exists() or not Path("/proc").exists()
    cleanup()
    import psutil

    assert not psutil.pid_exists(pid)


def test_a_failure_cleans_up(tmp_path: Path) -> None:
    executor = Watched([ExecutorError("no", code="agent-crashed")])
    with pytest.raises(ExecutorError, match="no"):
        run_eval(stimulus(), executor=executor, work_dir=tmp_path)
    assert len(executor.cleaned) == 1
    assert not executor.options[0].trial_dir.exists()


def test_a_timeout_is_an_error_of_the_agent(tmp_path: Path) -> None:
    from vally.testing import Wait

    executor = ScriptedExecutor([Wait(600)])
    trajectory, cleanup = run_eval(stimulus(), executor=executor, work_dir=tmp_path, options={"timeout_ms": 50})
    cleanup()
    assert trajectory.end_reason == "agent_timeout"


def test_inside_an_event_loop(tmp_path: Path) -> None:
    executor = Watched(["done"])

    async def main() -> None:
        trajectory, cleanup = await arun_eval(stimulus(), executor=executor, work_dir=tmp_path)
        assert trajectory.output == "done"
        await cleanup()

    anyio.run(main)
    assert len(executor.cleaned) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"modle": "m"}}, "unknown option 'modle'"),
        ({"work_dir": "missing"}, "is not a directory"),
        ({"executor": "nobody", "options": {"host": PluginHost()}}, "nobody"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = {"executor": ScriptedExecutor(), "work_dir": tmp_path, **arguments}
    if isinstance(given["work_dir"], str):
        given["work_dir"] = tmp_path / given["work_dir"]
    with pytest.raises(VallyError, match=message):
        run_eval(stimulus(), **given)
