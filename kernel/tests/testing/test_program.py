"""The program in process, and that nothing of an invocation survives it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import click
import pytest

import vally
from vally import CommandSpec, ExecutorError, StopSignal
from vally.testing import ScriptedExecutor, Wait, event, run_cli
from vally.testing.trials import executor_options, stimulus


def command(name: str, function: Any) -> CommandSpec:
    """A command of the program that calls `function`."""
    return CommandSpec(name=name, summary=f"runs {name}", factory=lambda: click.Command(name, callback=function))


def test_streams_and_exit_code(tmp_path: Path) -> None:
    result = run_cli(["--version"], cwd=tmp_path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{vally.__version__}\n", "")
    assert (result.run_dir, result.records) == (None, [])


def test_a_usage_error(tmp_path: Path) -> None:
    result = run_cli(["plugins", "list", "--surely-not"], cwd=tmp_path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")


def test_input_environment_and_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALLY_CONFIG", "of-the-developer")
    monkeypatch.setenv("MY_TOKEN", "secret")
    seen: dict[str, Any] = {}

    @click.pass_obj
    def look(context: Any) -> None:
        seen.update(context.environ)
        seen["directory"] = (context.cwd, Path.cwd())
        click.echo(sys.stdin.read().upper())

    result = run_cli(["look"], cwd=tmp_path, env={"COLUMNS": "40"}, input="typed", plugins=[command("look", look)])
    assert result.stdout == "TYPED\n"
    assert seen["COLUMNS"] == "40"
    assert not {"VALLY_CONFIG", "MY_TOKEN"} & set(seen)
    assert seen["directory"] == (tmp_path, tmp_path)
    assert not Path(seen["VALLY_CACHE_DIR"]).exists()


def test_plugins_of_one_invocation_are_unknown_to_the_next(tmp_path: Path) -> None:
    greet = command("greet", lambda: click.echo("hello"))
    assert run_cli(["greet"], cwd=tmp_path, plugins=[greet]).stdout == "hello\n"
    assert run_cli(["greet"], cwd=tmp_path).exit_code == 2


def test_nothing_survives(tmp_path: Path) -> None:
    def disturb() -> None:
        sys.path.insert(0, "/somewhere")
        os.chdir("/")
        logging.getLogger("vally").addHandler(logging.NullHandler())
        logging.getLogger("vally").setLevel(1)
        raise RuntimeError("and failed")

    logger = logging.getLogger("vally")
    state = (Path.cwd(), list(sys.path), list(logger.handlers), logger.level, sys.stdin, sys.stdout, sys.stderr)
    result = run_cli(["disturb"], cwd=tmp_path, plugins=[command("disturb", disturb)])
    assert result.exit_code == 1
    assert result.stderr.startswith("internal error: RuntimeError: and failed\n")
    after = (Path.cwd(), list(sys.path), list(logger.handlers), logger.level, sys.stdin, sys.stdout, sys.stderr)
    assert after == state


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("vally_file_")}
    text = "from vally import GraderSpec\nX = GraderSpec(name={!r}, summary='fine', factory=dict)\n"
    words = ["plugins", "list", "--kind", "grader", "--no-plugins", "--grader-plugin", "./x.py"]
    for name in ("first", "second"):
        (tmp_path / "x.py").write_text(text.format(name))
        assert f"grader  {name} " in run_cli(words, cwd=tmp_path).stdout.replace("    ", " ")
    assert {name for name in sys.modules if name.startswith("vally_file_")} == before


def play(directory: Path, executor: ScriptedExecutor, *turns: str, **fields: Any) -> Any:
    return anyio.run(executor.execute, stimulus(*turns), executor_options(directory, **fields))


def test_a_scripted_executor_plays_its_steps(tmp_path: Path) -> None:
    async def later(_: Any, options: Any) -> list[Any]:
        return [event("custom", event_type="note"), f"in {options.work_dir.name}"]

    executor = ScriptedExecutor(["working", {"made.txt": "made"}, later, Wait(0)])
    made = play(tmp_path, executor)
    assert (tmp_path / "work" / "made.txt").read_text() == "made"
    types = [item.type for item in made.events]
    assert types == [
        "user_message",
        "turn_start",
        "assistant_message",
        "tool_call",
        "tool_result",
        "custom",
        "assistant_message",
        "turn_end",
    ]
    assert (made.output, made.end_reason, len(executor.options)) == ("in work", "completed", 1)


def test_scripts_by_stimulus_and_turn(tmp_path: Path) -> None:
    script = {"stimulus": [["one"], ["two"]], "other": ["never"]}
    made = play(tmp_path, ScriptedExecutor(script), "a", "b", "c")
    assert [item.data["content"] for item in made.events if item.type == "assistant_message"] == ["one", "two"]
    assert [item.turn for item in made.events if item.type == "user_message"] == [0, 1, 2]


def test_a_stop_ends_the_script(tmp_path: Path) -> None:
    stop = StopSignal()
    executor = ScriptedExecutor([lambda *_: stop.set("timeout"), Wait(60), "never said"])
    made = play(tmp_path, executor, stop=stop)
    assert (made.output, made.end_reason) == ("", "agent_timeout")


@pytest.mark.parametrize(
    ("step", "error"),
    [(ExecutorError("down", code="agent-crashed"), ExecutorError), (3.5, TypeError)],
    ids=["raised", "no-step"],
)
def test_steps_that_fail(tmp_path: Path, step: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        play(tmp_path, ScriptedExecutor([step]))
