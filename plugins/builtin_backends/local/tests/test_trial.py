"""One trial on this machine: order, set-up, environments, failures, cancelling, cleaning up."""

from __future__ import annotations

import shutil
import stat
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from vally import (
    Environment,
    ExecutorError,
    McpServer,
    Scoring,
    StagedFile,
    StopSignal,
    Trajectory,
    TrialSkipped,
)
from vally.testing import ScriptedExecutor, Wait, process_sentinel


def look(seen: dict[str, object]):
    """A step that notes what the agent finds."""

    def step(_, options):
        seen["work_dir"] = options.work_dir
        seen["trial_dir"] = options.trial_dir
        seen["files"] = sorted(p.relative_to(options.work_dir).as_posix() for p in options.work_dir.rglob("*"))
        seen["env"] = dict(options.env)
        seen["base_env"] = dict(options.base_env)
        seen["modes"] = {
            name: stat.S_IMODE(getattr(options, name).stat().st_mode) for name in ("work_dir", "trial_dir")
        }

    return step


def test_a_trial_goes_through_its_phases(bench) -> None:
    outcome = bench.run(bench.stimulus(bench.diff_has("+hello")), ScriptedExecutor([{"new.txt": "hello\n"}, "done"]))
    assert (outcome.status, outcome.error, bench.cleaned) == ("success", None, [])
    assert bench.phases == ["preparing", "running", "capturing", "grading"]
    assert outcome.grade.passed
    assert outcome.trajectory.output == "done"
    assert outcome.trajectory.work_dir == str(outcome.work_dir)
    assert outcome.phases.agent_ms >= 0


def test_without_graders_nothing_is_graded(bench) -> None:
    outcome = bench.run(bench.stimulus())
    assert (outcome.status, outcome.grade) == ("success", None)
    assert bench.phases == ["preparing", "running", "capturing"]
    assert outcome.trajectory.diff is None
    assert outcome.trajectory.diff_error is None


def test_skip_grade_still_captures_the_diff(bench) -> None:
    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([{"a": "a"}]), skip_grade=True)
    assert outcome.grade is None
    assert "+a" in outcome.trajectory.diff


def test_directories_tell_nothing_and_are_private(bench) -> None:
    seen: dict[str, object] = {}
    bench.run(bench.stimulus(), ScriptedExecutor([look(seen)]))
    work_dir, trial_dir = seen["work_dir"], seen["trial_dir"]
    assert work_dir.parent.parent == trial_dir.parent == bench.temporary.resolve()
    assert work_dir.name.startswith("vally-eval-")
    assert not {"stimulus", "eval.yaml", "item"} & {*work_dir.name.split("-"), *work_dir.parent.name.split("-")}
    assert seen["modes"] == {"work_dir": 0o700, "trial_dir": 0o700}
    assert seen["files"] == []


def test_nothing_of_anybody_lies_around_a_workspace(bench, tmp_path: Path) -> None:
    precious = tmp_path / "tmp" / "precious"
    precious.write_text("precious")

    def clear(_, options):
        assert [path.name for path in options.work_dir.parent.iterdir()] == [options.work_dir.name]
        script = "rm -rf ../*; mkdir -p ../more; echo x > ../more/x"
        subprocess.run(["sh", "-c", script], cwd=options.work_dir, check=True)

    outcome = bench.run(bench.stimulus(), ScriptedExecutor([clear]))
    assert outcome.status == "success"
    assert precious.read_text() == "precious"
    precious.unlink()
    assert bench.left() == []


def test_everything_is_staged_in_order(bench) -> None:
    project = bench.project
    project.file("fixture/a.txt", "fixture")
    agent = project.file("agent.md", "agent")
    skill = project.skill("helper")
    environment = bench.staged((project.root / "fixture", "."), commands=("cat a.txt helper/SKILL.md AGENTS.md > log",))
    stimulus = bench.stimulus(
        bench.shell("cat log"),
        environment=environment,
        agent_environment=bench.staged((agent, "AGENTS.md"), commands=("echo later >> log",)),
    )
    seen: dict[str, object] = {}
    executor = ScriptedExecutor([look(seen)])
    outcome = bench.run(stimulus, executor, item={"skills": (skill,)})
    assert outcome.status == "success", outcome.error
    assert seen["files"] == ["AGENTS.md", "a.txt", "helper", "helper/SKILL.md", "log"]
    evidence = outcome.grade.details[0].metadata["stdout"]
    assert evidence.startswith("fixture---\nname: helper")
    assert evidence.endswith("agentlater")
    offered = executor.options[0].skills
    assert [(one.name, one.path) for one in offered] == [("helper", seen["work_dir"] / "helper" / "SKILL.md")]
    assert outcome.trajectory.metadata["skillsLoaded"] == ["helper"]


def test_commands_see_the_environment_of_the_environment_only(bench) -> None:
    bench.process_env |= {"FROM_PROCESS": "1", "VALLY_CONFIG": "x", "EVALUATE_WORKSPACE": "x", "evaluate_assets": "x"}
    asset = bench.project.file("asset", "asset")
    files = (StagedFile(src=asset, dest="asset", dest_root="assets"),)
    stimulus = bench.stimulus(
        bench.shell("cat env"),
        environment=Environment(files=files, env={"SHARED": "1"}, commands=("env > env; cat $EVALUATE_ASSETS/asset",)),
        agent_environment=Environment(env={"AGENT_ONLY": "1"}),
    )
    seen: dict[str, object] = {}
    outcome = bench.run(stimulus, ScriptedExecutor([look(seen)]), item={"seed": 7})
    lines = dict(line.split("=", 1) for line in outcome.grade.details[0].metadata["stdout"].splitlines())
    agent = seen["env"]
    assert lines["FROM_PROCESS"] == lines["SHARED"] == "1"
    assert Path(lines["GIT_CEILING_DIRECTORIES"]).parent == bench.temporary.resolve()
    assert (lines["VALLY_TRIAL"], lines["EVALUATE_SEED"]) == (agent["VALLY_TRIAL"], "7")
    assert not {"AGENT_ONLY", "VALLY_CONFIG", "EVALUATE_WORKSPACE", "evaluate_assets"} & set(lines)
    assert lines["EVALUATE_ASSETS"] == agent["EVALUATE_ASSETS"] == outcome.trajectory.assets_dir
    assert agent["SHARED"] == agent["AGENT_ONLY"] == "1"
    assert "FROM_PROCESS" not in agent
    assert agent["HOME"] == str(seen["trial_dir"] / "home")
    assert "HOME" not in seen["base_env"]


def test_a_home_of_the_host_is_kept_when_the_executor_wants_it(bench) -> None:
    class Settings:
        home = "host"
        pass_env = ("EXTRA",)

    bench.process_env |= {"HOME": "/home/somebody", "EXTRA": "1"}
    seen: dict[str, object] = {}
    bench.run(bench.stimulus(), ScriptedExecutor([look(seen)]), executor_config=Settings())
    assert (seen["env"]["HOME"], seen["env"]["EXTRA"]) == ("/home/somebody", "1")
    assert bench.said == ["'home: host' lets results depend on the user's own agent settings"]


def test_a_failing_command_ends_the_trial(bench) -> None:
    environment = Environment(commands=("true", "echo one; echo two >&2; exit 3", "touch never"))
    executor = ScriptedExecutor()
    outcome = bench.run(bench.stimulus(bench.diff_has(), environment=environment), executor)
    assert outcome.status == "error"
    expected = "Setup command failed (exit 3): echo one; echo two >&2; exit 3\none\ntwo"
    assert (outcome.error.message, outcome.error.code) == (expected, "setup-command-failed")
    assert (outcome.error.phase, outcome.error.retryable) == ("preparing", False)
    assert outcome.error.details == {"exitCode": 3, "signal": None}
    assert (executor.options, outcome.trajectory, outcome.grade) == ([], None, None)
    assert bench.phases == ["preparing"]


def test_only_the_end_of_long_output_is_told(bench) -> None:
    environment = Environment(commands=("seq 1 5000; exit 1",))
    outcome = bench.run(bench.stimulus(environment=environment))
    head, _, output = outcome.error.message.partition("\n")
    assert head == "Setup command failed (exit 1): seq 1 5000; exit 1"
    assert len(output) == 4096
    assert output.endswith("4999\n5000")


def test_a_command_killed_by_a_signal_is_told(bench) -> None:
    outcome = bench.run(bench.stimulus(environment=Environment(commands=("kill -9 $$",))))
    assert outcome.error.message == "Setup command failed (SIGKILL): kill -9 $$"


def test_a_slow_command_is_ended_with_its_children(bench) -> None:
    environment = Environment(
        commands=("echo begun; sleep 600 & sleep 600",), command_timeout_ms=300, command_timeout_text="300ms"
    )
    outcome = bench.run(bench.stimulus(environment=environment))
    expected = "Setup command timed out after 300ms: echo begun; sleep 600 & sleep 600\nbegun"
    assert (outcome.error.message, outcome.error.code) == (expected, "setup-command-timeout")


def test_a_command_reads_nothing_from_stdin(bench) -> None:
    outcome = bench.run(bench.stimulus(environment=Environment(commands=('test -z "$(cat)"',))))
    assert outcome.status == "success"


def test_a_missing_source_is_a_set_up_error(bench) -> None:
    outcome = bench.run(bench.stimulus(environment=bench.staged((bench.root / "nowhere", "."))))
    assert (outcome.error.code, outcome.error.phase) == ("environment-file-not-found", "preparing")


def test_grading_environment_comes_after_the_capture(bench) -> None:
    hidden = bench.project.file("hidden/check.sh", 'test "$SECRET" = yes && cat made')
    seen: dict[str, object] = {}
    stimulus = bench.stimulus(
        bench.diff_has("+made by the agent"),
        bench.shell("sh check.sh"),
        grading_environment=bench.staged(
            (hidden.parent, "."), commands=("echo $SECRET > prepared",), env={"SECRET": "yes"}
        ),
    )
    outcome = bench.run(stimulus, ScriptedExecutor([look(seen), {"made": "made by the agent\n"}]))
    assert seen["files"] == []
    assert "SECRET" not in seen["env"]
    assert [result.passed for result in outcome.grade.details] == [True, True]
    assert "check.sh" not in outcome.trajectory.diff
    assert "prepared" not in outcome.trajectory.diff


def test_assets_of_the_grading_environment_reach_the_graders(bench) -> None:
    key = bench.project.file("key", "answer")
    stimulus = bench.stimulus(
        bench.shell('cat "$EVALUATE_ASSETS/key"'),
        grading_environment=Environment(files=(StagedFile(src=key, dest="key", dest_root="assets"),)),
    )
    executor = ScriptedExecutor()
    outcome = bench.run(stimulus, executor)
    assert outcome.grade.passed
    assert executor.options[0].assets_dir is None
    assert outcome.trajectory.assets_dir == str(executor.options[0].trial_dir / "assets")


def test_a_failing_grading_environment_keeps_the_trajectory(bench) -> None:
    stimulus = bench.stimulus(bench.shell("true"), grading_environment=Environment(commands=("exit 4",)))
    outcome = bench.run(stimulus)
    assert (outcome.status, outcome.error.phase) == ("error", "grading")
    assert outcome.error.message == "Setup command failed (exit 4): exit 4"
    assert outcome.grade is None
    assert outcome.trajectory is not None


def test_grading_environment_is_not_staged_when_nothing_is_graded(bench) -> None:
    stimulus = bench.stimulus(grading_environment=Environment(commands=("exit 4",)))
    assert bench.run(stimulus).status == "success"


def test_an_executor_error_keeps_what_was_seen(bench) -> None:
    partial = Trajectory(id="partial", output="so far")
    error = ExecutorError(
        "lost",
        code="provider-rate-limit",
        retryable=True,
        retry_after_ms=5000,
        details={"status": 429},
        trajectory=partial,
    )
    stimulus = bench.stimulus(bench.diff_has())
    outcome = bench.run(stimulus, ScriptedExecutor([{"half": "done\n"}, error]))
    assert (outcome.status, outcome.grade, outcome.retry_after_ms) == ("error", None, 5000)
    info = outcome.error
    assert (info.message, info.code, info.retryable, info.phase) == ("lost", "provider-rate-limit", True, "running")
    assert info.details == {"status": 429}
    assert outcome.trajectory.output == "so far"
    assert "+done" in outcome.trajectory.diff


def test_a_crash_of_the_executor_is_an_error(bench) -> None:
    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([ZeroDivisionError("oops")]))
    assert (outcome.status, outcome.trajectory) == ("error", None)
    assert (outcome.error.code, outcome.error.message) == ("executor-exception", "ZeroDivisionError: oops")


def test_an_executor_may_decline(bench) -> None:
    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([TrialSkipped("no licence")]))
    assert (outcome.status, outcome.skip_reason, outcome.error) == ("skipped", "no licence", None)


def test_a_hung_executor_times_out(bench, monkeypatch) -> None:
    class Deaf(ScriptedExecutor):
        async def execute(self, stimulus, options):
            await anyio.sleep(600)

    from vally_backend_local import agent_part

    real = agent_part.run_agent

    async def impatient(*args, **kwargs):
        return await real(*args, timeout_grace_s=0.1, **kwargs)

    monkeypatch.setattr(agent_part, "run_agent", impatient)
    outcome = bench.run(bench.stimulus(), Deaf(), item={"timeout_ms": 200})
    assert (outcome.error.code, outcome.error.message) == ("timeout", "Timeout after 200ms")


def test_a_timeout_that_the_agent_heeds_is_graded(bench) -> None:
    stimulus = bench.stimulus(bench.shell("true"))
    outcome = bench.run(stimulus, ScriptedExecutor([Wait(600)]), item={"timeout_ms": 200})
    assert (outcome.status, outcome.trajectory.end_reason) == ("success", "agent_timeout")
    assert outcome.grade.passed


@pytest.mark.parametrize("where", ["preparing", "running", "grading"])
def test_a_stop_skips_the_trial_wherever_it_is(bench, where: str) -> None:
    environment = Environment(commands=("touch here; sleep 600",) if where == "preparing" else ())
    graders = [bench.shell("touch here; sleep 600")] if where == "grading" else []
    steps = [Wait(600)] if where == "running" else ["done"]
    stop = StopSignal()

    async def main(backend):
        async with anyio.create_task_group() as group:
            group.start_soon(stop_in_phase, where)
            return await bench.attempt(
                backend, bench.stimulus(*graders, environment=environment), ScriptedExecutor(steps), stop=stop
            )

    async def stop_in_phase(phase: str) -> None:
        while phase not in bench.phases:
            await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        stop.set("cancelled")

    began = time.monotonic()
    outcome = bench.with_backend(main)
    assert (outcome.status, outcome.skip_reason) == ("skipped", "cancelled")
    assert time.monotonic() - began < 60
    assert (outcome.trajectory is None) is (where == "preparing")


def test_a_stop_before_the_start_skips_the_trial(bench) -> None:
    stop = StopSignal()
    stop.reason = "cancelled"
    executor = ScriptedExecutor()
    outcome = bench.run(bench.stimulus(), executor, stop=stop)
    assert (outcome.status, executor.options) == ("skipped", [])


def test_a_cancelled_task_leaves_nothing(bench) -> None:
    async def main(backend):
        with anyio.move_on_after(0.5):
            step = lambda _, options: options.runner.run(["sleep", "600"])  # noqa: E731
            await bench.attempt(backend, bench.stimulus(), ScriptedExecutor([step]))

    bench.with_backend(main)
    assert bench.phases[-1] == "running"


def test_background_processes_end_with_the_agent(bench) -> None:
    async def leave(_, options):
        line = "setsid sleep 600 & (nohup sleep 600 >/dev/null 2>&1 &) ; env -i setsid sleep 600 & echo left"
        await options.runner.run(["/bin/sh", "-c", line])

    executor = ScriptedExecutor([leave])
    assert bench.run(bench.stimulus(), executor).status == "success"
    with process_sentinel(executor.options[0].trial_id):
        pass


def test_private_directories_appear_with_the_first_process(bench) -> None:
    seen: dict[str, list[str]] = {}

    async def before(_, options):
        seen["before"] = sorted(path.name for path in options.trial_dir.iterdir())
        done = await options.runner.run(["/bin/sh", "-c", "touch $HOME/x $TMPDIR/x; pwd"])
        seen["pwd"] = [done.stdout.decode().strip()]
        seen["after"] = sorted(path.name for path in options.trial_dir.iterdir())

    outcome = bench.run(bench.stimulus(), ScriptedExecutor([before]))
    assert seen == {"before": [], "after": ["home", "run", "tmp"], "pwd": [str(outcome.work_dir)]}


def test_the_executor_prepares_before_the_baseline_and_cleans_up(bench) -> None:
    calls: list[object] = []

    class Preparing(ScriptedExecutor):
        async def prepare(self, stimulus, options):
            calls.append(("prepare", options.trial_id, (options.work_dir / "a.txt").read_text()))
            (options.work_dir / ".agent").mkdir()
            (options.work_dir / ".agent" / "config").write_text("configured\n")

        def cleanup(self, trial_id, *, preserve_workspace):
            calls.append(("cleanup", trial_id, preserve_workspace))

    fixture = bench.project.file("a.txt", "a")
    executor = Preparing([{"new": "new\n"}])
    outcome = bench.run(bench.stimulus(bench.diff_has(), environment=bench.staged((fixture, "a.txt"))), executor)
    trial_id = executor.options[0].trial_id
    assert calls == [("prepare", trial_id, "a"), ("cleanup", trial_id, False)]
    assert "configured" not in outcome.trajectory.diff
    assert "+new" in outcome.trajectory.diff
    assert len(list((bench.cache / "baselines").iterdir())) == 1


def test_a_failing_prepare_of_the_executor_is_an_error(bench) -> None:
    class Failing(ScriptedExecutor):
        def prepare(self, stimulus, options):
            raise ExecutorError("no config", code="executor-config")

    outcome = bench.run(bench.stimulus(), Failing())
    assert (outcome.error.code, outcome.error.phase) == ("executor-config", "preparing")


def test_trouble_while_cleaning_up_is_only_a_warning(bench) -> None:
    class Failing(ScriptedExecutor):
        async def cleanup(self, trial_id, *, preserve_workspace):
            raise OSError("stuck")

    assert bench.run(bench.stimulus(bench.shell("true")), Failing()).grade.passed
    assert bench.cleaned == ["clean-up of the executor failed: OSError: stuck"]


def test_unwritable_directories_are_removed(bench) -> None:
    def lock(_, options):
        (options.work_dir / "locked" / "deep").mkdir(parents=True)
        (options.work_dir / "locked" / "deep" / "file").write_text("")
        (options.work_dir / "locked" / "deep").chmod(0o500)
        (options.work_dir / "locked").chmod(0)

    bench.run(bench.stimulus(), ScriptedExecutor([lock]))
    assert bench.cleaned == []


def test_a_directory_that_stays_is_named_after_three_tries(bench, monkeypatch) -> None:
    from vally_backend_local import cleaning, directories

    tries = []

    def refuse(path: Path) -> None:
        tries.append(path)
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(cleaning, "PAUSES_S", (0.01, 0.01))
    with monkeypatch.context() as patch:
        patch.setattr(directories, "remove_tree", refuse)
        outcome = bench.run(bench.stimulus(bench.shell("echo > left.txt")))
    assert outcome.status == "success"
    assert len(tries) == 6
    assert bench.cleaned[0] == f"'{outcome.work_dir.parent}' could not be removed: Operation not permitted"
    for path in bench.temporary.iterdir():
        shutil.rmtree(path)


def test_servers_are_resolved_for_the_trial(bench) -> None:
    server = McpServer(name="db", type="stdio", command="./server", cwd="${workspace}/tools")
    executor = ScriptedExecutor()
    outcome = bench.run(bench.stimulus(environment=Environment(mcp_servers={"db": server})), executor)
    found = executor.options[0].mcp_servers["db"]
    assert (found.cwd, found.command) == (f"{outcome.work_dir}/tools", f"{outcome.work_dir}/tools/server")


def test_facts_reach_the_executor(bench) -> None:
    executor = ScriptedExecutor()
    bench.run(
        bench.stimulus(),
        executor,
        item={"model": "m", "reasoning_effort": "high", "seed": 3, "timeout_ms": 9000, "max_agent_duration_ms": 800},
    )
    options = executor.options[0]
    facts = (options.model, options.reasoning_effort, options.seed, options.timeout_ms, options.max_agent_duration_ms)
    assert facts == ("m", "high", 3, 9000, 800)
    assert options.deadline < time.monotonic() + 9
    assert options.shared_runner is not None
    assert options.assets_dir is None


def test_scoring_reaches_the_graders(bench) -> None:
    stimulus = bench.stimulus(bench.shell("sleep 600"))
    scoring = Scoring(timeout_ms=200, timeout_text="200ms")
    outcome = bench.run(stimulus, item={"scoring": scoring})
    assert outcome.grade.details[0].evidence == "Grading timed out after 200ms"


def test_the_workspace_can_be_exported_until_it_is_gone(bench) -> None:
    from vally import BackendError, Selection

    async def main(backend):
        steps = [{"a.txt": "a", "dir/b.txt": "b", ".hidden": "h"}]
        outcome = await backend.run_trial(bench.item(bench.stimulus()), bench.options(ScriptedExecutor(steps)))
        whole = await outcome.export_workspace(Selection(whole=True), bench.root / "whole")
        some = await outcome.export_workspace(Selection(include=("**/*.txt",), exclude=("a*",)), bench.root / "some")
        await outcome.cleanup()
        with pytest.raises(BackendError, match="workspace is not available"):
            await outcome.export_workspace(Selection(whole=True), bench.root / "late")
        return whole.files, some.files

    assert bench.with_backend(main) == ((".hidden", "a.txt", "dir/b.txt"), ("dir/b.txt",))


def test_twenty_trials_five_at_once_stay_apart(bench) -> None:
    fixture = bench.project.file("fixture/shared.txt", "shared\n")
    stimulus = bench.stimulus(bench.diff_has(), environment=bench.staged((fixture.parent, ".")))

    async def main(backend):
        found: dict[int, object] = {}
        limiter = anyio.CapacityLimiter(5)

        async def one(number: int) -> None:
            async with limiter:
                executor = ScriptedExecutor([{"mine.txt": f"trial {number}\n", "shared.txt": f"edited {number}\n"}])
                found[number] = await bench.attempt(
                    backend, stimulus, executor, output_dir=bench.root / "run" / str(number)
                )

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
        return found

    found = bench.with_backend(main)
    for number, outcome in found.items():
        added = [line for line in outcome.trajectory.diff.splitlines() if line.startswith("+") and "+++" not in line]
        assert added == [f"+trial {number}", f"+edited {number}"]
    assert fixture.read_text() == "shared\n"


def test_a_backend_that_is_shut_down_takes_no_trials(bench) -> None:
    from vally import BackendError

    async def main(backend):
        await backend.shutdown()
        await backend.shutdown()
        with pytest.raises(BackendError, match="shut down"):
            await backend.run_trial(bench.item(bench.stimulus()), bench.options(ScriptedExecutor()))

    bench.with_backend(main)


def test_a_read_only_cache_only_costs_time(bench) -> None:
    fixture = bench.project.file("a.txt", "a")
    bench.cache.write_text("not a directory")
    stimulus = bench.stimulus(bench.diff_has("-a"), environment=bench.staged((fixture, "a.txt")))
    outcome = bench.run(stimulus, ScriptedExecutor([{"a.txt": "b"}]))
    assert outcome.grade.passed
    assert len(bench.said) == 1
    assert "is not writable" in bench.said[0]
