"""Running agents by their command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError, Skill, StopSignal, Trajectory, TrialSkipped, TurnComplete
from vally_executor_command.config import CommandConfig
from vally_executor_command.executor import CommandExecutor

pytestmark = pytest.mark.anyio
Agent = Callable[..., str]
Execute = Callable[..., Awaitable[Trajectory]]
Reports = Callable[[], list[dict[str, Any]]]


def kinds(trajectory: Trajectory) -> list[str]:
    return [event.type for event in trajectory.events]


async def test_the_whole_output_is_the_answer(execute: Execute, agent: Agent) -> None:
    trajectory = await execute({"command": [agent("cat; echo; echo more", shell=True)]}, "hi")
    assert (trajectory.output, trajectory.end_reason) == ("hi\nmore\n", "completed")
    assert kinds(trajectory) == ["user_message", "turn_start", "assistant_message", "turn_end"]
    assert trajectory.metrics is not None
    assert trajectory.metrics.turn_count == 1
    assert trajectory.metadata["executor"] == "command"


async def test_escape_sequences_and_broken_bytes(execute: Execute, agent: Agent) -> None:
    body = r"printf '\033[1;31mred\033[0m \033]0;title\007\033]8;;http://x\033\\link\033(B \377end'"
    assert (await execute({"command": [agent(body, shell=True)]})).output == "red link \ufffdend"


async def test_an_agent_may_say_nothing(execute: Execute, agent: Agent) -> None:
    trajectory = await execute({"command": [agent("exit 0", shell=True)]})
    assert (trajectory.output, trajectory.end_reason) == ("", "completed")
    assert kinds(trajectory) == ["user_message", "turn_start", "turn_end"]


async def test_turns_follow_each_other(execute: Execute, spy: str, reports: Reports, trial_id: str) -> None:
    seen: list[tuple[int, bool, int]] = []

    async def done(turn: TurnComplete) -> None:
        seen.append((turn.turn, turn.final, len(reports())))

    config = {"command": [spy, "{turn}"], "continueCommand": [spy, "--resume", "{session_id}", "{turn}"]}
    trajectory = await execute(config, "a", "b", "c", on_turn_complete=done)
    assert [(report["argv"], report["stdin"]) for report in reports()] == [
        (["0"], "a"),
        (["--resume", trial_id, "1"], "b"),
        (["--resume", trial_id, "2"], "c"),
    ]
    assert seen == [(0, False, 1), (1, False, 2), (2, True, 3)]
    assert [event.turn for event in trajectory.events] == [0] * 4 + [1] * 4 + [2] * 4


async def test_more_turns_need_a_second_template(execute: Execute, spy: str, reports: Reports) -> None:
    with pytest.raises(ExecutorError, match="continueCommand") as caught:
        await execute({"command": [spy]}, "a", "b")
    assert (caught.value.code, reports()) == ("unsupported-option", [])


async def test_the_agent_runs_in_the_workspace_with_its_environment(
    execute: Execute, spy: str, reports: Reports, work_dir: Path, trial_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_TESTS", "x")
    config = {"command": [spy], "env": {"WHERE": "{workspace}", "TURN": "{turn}", "SPEC": "config"}}
    await execute(config, env={"HOME": "/private", "SPEC": "spec"})
    report = reports()[0]
    env = {name: value for name, value in report["env"].items() if name not in ("PATH", "REPORTS", "LC_CTYPE")}
    assert Path(report["cwd"]) == work_dir
    assert env == {
        "HOME": "/private",
        "SPEC": "config",
        "WHERE": str(work_dir),
        "TURN": "0",
        "VALLY_TRIAL": trial_id,
    }


async def test_an_empty_placeholder_in_the_environment_is_an_error(execute: Execute, spy: str) -> None:
    with pytest.raises(ExecutorError, match=r"'\{model\}' in 'x-\{model\}' has no value") as caught:
        await execute({"command": [spy], "env": {"M": "x-{model}"}})
    assert caught.value.code == "executor-config"


async def test_the_callers_home_is_warned_of_once(execute: Execute, spy: str, caplog: pytest.LogCaptureFixture) -> None:
    executor = CommandExecutor()
    for home in ("private", "host", "host"):
        await execute({"command": [spy], "home": home}, executor=executor)
    assert [text for text in caplog.messages if "home: host" in text] == [caplog.messages[0]]


async def test_skills_are_copied_before_the_agent_starts(execute: Execute, work_dir: Path, tmp_path: Path) -> None:
    from vally import ExecutorOptions, LocalProcessRunner, Stimulus

    source = work_dir / "skills" / "greeter"
    (source / "scripts").mkdir(parents=True)
    (source / "SKILL.md").write_text("greet")
    (source / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (source / "scripts" / "run.sh").chmod(0o755)
    skill = Skill(name="greeter", description="", path=source / "SKILL.md", raw_content="greet", frontmatter={})
    options = ExecutorOptions(
        item_id="i",
        trial_id="t",
        work_dir=work_dir,
        trial_dir=tmp_path / "trial",
        spec_dir=tmp_path,
        skills=(skill,),
        timeout_ms=1,
        deadline=0,
        executor_config=CommandConfig(command=["a"], skills_dir=".claude/skills"),
        runner=LocalProcessRunner("t", {}),
    )
    stimulus = Stimulus(name="s", prompt="p", turns=("p",))
    for _ in range(2):
        await CommandExecutor().prepare(stimulus, options)
    copied = work_dir / ".claude" / "skills" / "greeter"
    assert (copied / "SKILL.md").read_text() == "greet"
    assert (copied / "scripts" / "run.sh").stat().st_mode & 0o111


@pytest.mark.parametrize(("name", "code"), [("no-such-agent", "executor-unavailable"), ("./a", "executor-unavailable")])
async def test_a_missing_program(execute: Execute, name: str, code: str) -> None:
    with pytest.raises(ExecutorError, match="cannot start") as caught:
        await execute({"command": [name]})
    assert (caught.value.code, caught.value.retryable) == (code, False)
    assert caught.value.trajectory is not None
    assert kinds(caught.value.trajectory) == ["user_message"]


async def test_a_program_of_the_workspace(execute: Execute, work_dir: Path) -> None:
    (work_dir / "agent.sh").write_text("#!/bin/sh\necho local\n")
    (work_dir / "agent.sh").chmod(0o755)
    assert (await execute({"command": ["./agent.sh"]})).output == "local\n"


# What the agent does -> code, retryable, details beside stderr; None: a trajectory that ends with `error`.
ENDS: dict[str, tuple[str, tuple[str, bool, dict[str, object]] | None]] = {
    "nothing said": ("exit 3", ("agent-start-failed", True, {"exitCode": 3})),
    "something said": ("echo hello; exit 3", None),
    "status unrelated to an error": ("echo 'status: 404'; exit 3", None),
    "crash": ("echo hello; kill -SEGV $$", ("agent-crashed", True, {})),
    "killed": ("kill -KILL $$", ("agent-crashed", True, {})),
    "401": ("echo hi; echo 'error, status: 401' >&2; exit 1", ("provider-auth", False, {"exitCode": 1, "status": 401})),
    "403": ("echo '{\"statusCode\":403}' >&2; exit 1", ("provider-auth", False, {"exitCode": 1, "status": 403})),
    "429": ("echo 'status=429' >&2; exit 1", ("provider-rate-limit", True, {"exitCode": 1, "status": 429})),
    "400": ("echo 'api_error_status: 400' >&2; exit 1", ("provider-error", False, {"exitCode": 1, "status": 400})),
    "409": ("echo 'Status Code: 409' >&2; exit 1", ("provider-error", True, {"exitCode": 1, "status": 409})),
    "503": ("echo 'status: 503' >&2; exit 1", ("provider-error", True, {"exitCode": 1, "status": 503})),
}


@pytest.mark.parametrize(("body", "expected"), ENDS.values(), ids=ENDS.keys())
async def test_how_an_agent_may_end(
    execute: Execute, agent: Agent, body: str, expected: tuple[str, bool, dict[str, object]] | None
) -> None:
    config = {"command": [agent(body, shell=True)]}
    if expected is None:
        trajectory = await execute(config)
        assert trajectory.end_reason == "error"
        assert kinds(trajectory) == ["user_message", "turn_start", "assistant_message", "error"]
        assert trajectory.events[-1].data == {"message": "the agent ended with exit code 3"}
        return
    with pytest.raises(ExecutorError) as caught:
        await execute(config)
    details = {key: value for key, value in (caught.value.details or {}).items() if key != "stderr"}
    assert (caught.value.code, caught.value.retryable, details) == expected
    assert caught.value.trajectory is not None
    assert caught.value.trajectory.end_reason == "error"


async def test_an_error_has_the_end_of_stderr(execute: Execute, agent: Agent) -> None:
    body = "import sys; sys.stderr.write('x' * 9000 + '\\nsecret: the reason\\n'); sys.exit(1)"
    with pytest.raises(ExecutorError, match="exit code 1: \\*\\*\\*: the reason") as caught:
        await execute({"command": [agent(body)]}, redact=lambda text: text.replace("secret", "***"))
    assert caught.value.details is not None
    stderr = str(caught.value.details["stderr"])
    assert stderr.endswith("***: the reason")
    assert 4000 < len(stderr) <= 4096


async def test_a_rate_limit_may_tell_how_long_to_wait(execute: Execute, agent: Agent) -> None:
    with pytest.raises(ExecutorError) as caught:
        await execute({"command": [agent("echo 'status: 429, retry-after: 7' >&2; exit 1", shell=True)]})
    assert caught.value.retry_after_ms == 7000


async def test_other_exit_codes_may_be_fine(execute: Execute, agent: Agent) -> None:
    config = {"command": [agent("echo ok; exit 2", shell=True)], "successExitCodes": [0, 2]}
    assert (await execute(config)).end_reason == "completed"


async def test_an_error_in_a_later_turn_keeps_the_earlier_ones(execute: Execute, agent: Agent) -> None:
    config = {"command": ["echo", "first"], "continueCommand": [agent("exit 1", shell=True)]}
    seen: list[int] = []

    async def done(turn: TurnComplete) -> None:
        seen.append(turn.turn)

    trajectory = await execute(config, "a", "b", "c", on_turn_complete=done)
    assert (trajectory.end_reason, trajectory.output, seen) == ("error", "first\n", [0])


async def test_too_much_output_ends_the_agent(execute: Execute, agent: Agent) -> None:
    began = time.monotonic()
    with pytest.raises(ExecutorError, match="more than 1000 bytes to stdout") as caught:
        await execute({"command": ["yes", "line"], "maxOutputBytes": 1000})
    assert (caught.value.code, caught.value.retryable) == ("agent-protocol", False)
    assert caught.value.details == {"line": ("line\n" * 40)}
    assert time.monotonic() - began < 30


async def test_output_up_to_the_limit_is_fine(execute: Execute) -> None:
    assert (await execute({"command": ["printf", "12345"], "maxOutputBytes": 5})).output == "12345"


async def test_a_timeout_keeps_what_was_said(execute: Execute, agent: Agent) -> None:
    trajectory = await execute({"command": [agent("echo so far; sleep 600", shell=True)]}, timeout_ms=700)
    assert (trajectory.end_reason, trajectory.output) == ("agent_timeout", "so far\n")
    assert kinds(trajectory) == ["user_message", "turn_start", "assistant_message"]


async def test_an_agent_that_ignores_the_stop_is_killed(execute: Execute, agent: Agent) -> None:
    body = "trap '' TERM INT; echo stubborn; sleep 600 & while :; do sleep 0.1; done"
    began = time.monotonic()
    trajectory = await execute({"command": [agent(body, shell=True)]}, timeout_ms=500)
    assert trajectory.end_reason == "agent_timeout"
    assert time.monotonic() - began < 10


async def test_the_soft_limit_ends_the_agent(execute: Execute, agent: Agent) -> None:
    config = {"command": [agent("sleep 600", shell=True)]}
    assert (await execute(config, max_agent_duration_ms=300)).end_reason == "agent_timeout"


async def test_cancelling_skips_the_trial(execute: Execute, agent: Agent) -> None:
    stop = StopSignal()

    async def cancel() -> None:
        await anyio.sleep(0.5)
        stop.set("cancelled")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        with pytest.raises(TrialSkipped) as caught:
            await execute({"command": [agent("echo begun; sleep 600", shell=True)]}, stop=stop)
    assert caught.value.trajectory is not None
    assert (caught.value.trajectory.end_reason, caught.value.trajectory.output) == ("cancelled", "begun\n")


async def test_a_stop_between_turns_starts_no_further_one(execute: Execute, spy: str, reports: Reports) -> None:
    stop = StopSignal()

    async def done(_: TurnComplete) -> None:
        stop.set("timeout")

    config = {"command": [spy], "continueCommand": [spy]}
    trajectory = await execute(config, "a", "b", stop=stop, on_turn_complete=done)
    assert (trajectory.end_reason, len(reports())) == ("agent_timeout", 1)
    assert kinds(trajectory).count("user_message") == 1


async def test_a_background_process_neither_hangs_the_turn_nor_ends_with_it(execute: Execute, agent: Agent) -> None:
    config = {
        "command": [agent("sleep 600 & echo $! > pid; echo started", shell=True)],
        "continueCommand": [agent("kill -0 $(cat pid) && echo alive", name="b", shell=True)],
    }
    trajectory = await execute(config, "a", "b")
    assert trajectory.output == "alive\n"


async def test_shutdown_during_a_run_leaves_no_process(execute: Execute, agent: Agent) -> None:
    executor = CommandExecutor()
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await anyio.sleep(0.5)
            await executor.shutdown()
            await executor.shutdown()

        tasks.start_soon(end)
        with pytest.raises(ExecutorError) as caught:
            await execute({"command": [agent("sleep 600", shell=True)]}, executor=executor)
    assert caught.value.code == "agent-crashed"


async def test_cancellation_of_the_call_ends_the_agent(execute: Execute, agent: Agent, trial_id: str) -> None:
    with anyio.move_on_after(0.5) as scope:
        await execute({"command": [agent("trap '' TERM; while :; do sleep 0.1; done", shell=True)]})
    assert scope.cancelled_caught


async def test_the_session_log_has_the_raw_output(execute: Execute, agent: Agent, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "session.log"
    script = agent(r"printf '\033[1mkey turn\033[0m\n'", shell=True)
    trajectory = await execute(
        {"command": [script], "continueCommand": [script]},
        "a",
        "b",
        session_log=log,
        redact=lambda text: text.replace("key", "***"),
    )
    assert trajectory.session_path == str(log)
    assert log.read_text() == "\x1b[1m*** turn\x1b[0m\n" * 2


async def test_twenty_trials_at_once(execute: Execute, agent: Agent) -> None:
    script = agent("sleep 0.2; cat", shell=True)
    outputs: dict[int, str] = {}

    async def one(number: int) -> None:
        outputs[number] = (await execute({"command": [script]}, f"prompt {number}")).output

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert outputs == {number: f"prompt {number}" for number in range(20)}


async def test_preflight_looks_for_the_program(agent: Agent) -> None:
    executor = CommandExecutor()
    for fine in (sys.executable, "./of-the-workspace", "{workspace}/agent"):
        assert fine in await executor.preflight(CommandConfig(command=[fine]))
    for missing in ("no-such-agent", "/no/such/agent"):
        with pytest.raises(ExecutorError, match="was not found") as caught:
            await executor.preflight(CommandConfig(command=[missing]))
        assert caught.value.code == "executor-unavailable"


def test_an_isolated_agent_needs_the_directories_of_its_program(agent: Agent, tmp_path: Path) -> None:
    real = Path(agent("true", shell=True))
    link = tmp_path / "link" / "agent"
    link.parent.mkdir()
    link.symlink_to(real)
    assert CommandExecutor().host_paths(CommandConfig(command=[str(link)])) == [link.parent, real.parent.resolve()]
    assert CommandExecutor().host_paths(CommandConfig(command=["no-such-agent"])) == []
