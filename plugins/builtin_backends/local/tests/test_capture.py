"""Diffs, patches and artifacts of a trial, and where they are kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from vally import Artifacts, GraderEntry, TurnComplete
from vally.testing import ScriptedExecutor
from vally_backend_local import capture

LIMIT = 262_144


def run_with_diff_of(bench, size: int, *graders: GraderEntry):
    """A trial whose diff has exactly `size` bytes."""
    stimulus = bench.stimulus(bench.diff_has(), *graders)
    probe = bench.run(stimulus, ScriptedExecutor([{"f": "x\n"}]))
    return bench.run(stimulus, ScriptedExecutor([{"f": "x" * (size - len(probe.trajectory.diff) + 1) + "\n"}]))


@pytest.mark.parametrize(("id_", "size"), [("SD-1", LIMIT), ("SD-2", LIMIT + 1)], ids=["SD-1", "SD-2"])
def test_large_diffs_lie_beside_the_record(bench, id_: str, size: int) -> None:
    outcome = run_with_diff_of(bench, size)
    trajectory, sidecar = outcome.trajectory, bench.output / "workspace.diff"
    assert outcome.grade.passed
    if id_ == "SD-1":
        assert (len(trajectory.diff), trajectory.diff_path, sidecar.exists()) == (size, None, False)
    else:
        assert (trajectory.diff, trajectory.diff_path) == (None, "eval/stimulus/default-model/0/workspace.diff")
        assert sidecar.stat().st_size == size


@pytest.mark.parametrize("id_", ["SD-3"])
def test_no_change_is_an_empty_diff_and_no_patch(bench, id_: str) -> None:
    outcome = bench.run(bench.stimulus(bench.diff_has()))
    assert (outcome.trajectory.diff, outcome.trajectory.diff_error) == ("", None)
    assert not bench.output.exists()


@pytest.mark.parametrize("id_", ["SD-4"])
def test_without_git_the_trial_goes_on(bench, id_: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([{"a": "a"}]))
    assert outcome.status == "success"
    assert (outcome.trajectory.diff, outcome.trajectory.diff_error) == (None, "git not found")
    assert not outcome.grade.passed


def turns(bench, *script, entries=None, **fields):
    graders = entries or (bench.diff_has("+two", turn=1), bench.diff_has("+one", turn=0))
    stimulus = bench.stimulus(*graders, turns=("one", "two"), **fields)
    return bench.run(stimulus, ScriptedExecutor(list(script)))


@pytest.mark.parametrize("id_", ["SD-5"])
def test_a_failed_turn_is_told(bench, id_: str, monkeypatch) -> None:
    real = capture.Snapshotter.turn

    def fails_at_two(self, number: int) -> None:
        monkeypatch.setenv("PATH", "/nowhere" if number == 1 else os.environ["PATH"])
        real(self, number)

    monkeypatch.setattr(capture.Snapshotter, "turn", fails_at_two)
    outcome = turns(bench, ["nothing"], [{"b": "two\n"}])
    first, second = outcome.trajectory.turn_diffs
    assert (first.turn, first.status, first.diff) == (0, "captured", "")
    assert (second.turn, second.status, second.diff, second.error) == (1, "failed", None, "git not found")


def test_each_turn_has_its_own_diff(bench) -> None:
    outcome = turns(bench, [{"a": "one\n"}], [{"a": "two\n"}])
    assert [result.passed for result in outcome.grade.details] == [True, True]
    first, second = outcome.trajectory.turn_diffs
    assert "+one" in first.diff
    assert "-one\n+two" in second.diff
    assert "one" not in outcome.trajectory.diff


def test_large_turn_diffs_lie_beside_the_record(bench) -> None:
    outcome = turns(bench, [{"a": "one\n"}], [{"a": "two" + "x" * LIMIT + "\n"}])
    assert outcome.grade.details[0].passed
    first, second = outcome.trajectory.turn_diffs
    assert first.diff_path is None
    assert (second.diff, second.diff_path) == (None, "eval/stimulus/default-model/0/turn-1.diff")
    assert (bench.output / "turn-1.diff").read_text().startswith("diff --git a/a b/a\n")


def test_turns_are_not_captured_when_nobody_reads_them(bench) -> None:
    outcome = turns(bench, [{"a": "one\n"}], [{"a": "two\n"}], entries=(bench.diff_has("+two"),))
    assert outcome.grade.passed
    assert outcome.trajectory.turn_diffs is None


def test_an_executor_without_turns_has_no_turn_diffs(bench) -> None:
    class Silent(ScriptedExecutor):
        async def execute(self, stimulus, options):
            async def forget(_: TurnComplete) -> None:
                return None

            from dataclasses import replace

            return await super().execute(stimulus, replace(options, on_turn_complete=forget))

    stimulus = bench.stimulus(bench.diff_has("+one", turn=0), turns=("one", "two"))
    outcome = bench.run(stimulus, Silent([[{"a": "one\n"}], []]))
    assert outcome.trajectory.turn_diffs == []
    assert not outcome.grade.passed


def test_no_grader_that_reads_a_diff_no_snapshot(bench, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    outcome = bench.run(bench.stimulus(bench.shell("true")), ScriptedExecutor([{"a": "a"}]))
    assert (outcome.trajectory.diff, outcome.trajectory.diff_error) == (None, None)
    assert bench.phases == ["preparing", "running", "capturing", "grading"]


def test_an_unusable_grader_entry_needs_no_diff(bench) -> None:
    entries = (GraderEntry(type="unknown"), GraderEntry(type="diff-has", config={"value": 3}))
    outcome = bench.run(bench.stimulus(*entries))
    assert outcome.trajectory.diff is None
    assert [result.status for result in outcome.grade.details] == ["error", "error"]


def test_graders_see_secrets_and_files_do_not(bench) -> None:
    stimulus = bench.stimulus(bench.diff_has("sesame-open"))
    text = "key = sesame-open\n" + "x" * LIMIT + "\n"
    outcome = bench.run(stimulus, ScriptedExecutor([{"a.txt": text, "b.bin": "sesame-open\0"}]))
    assert outcome.grade.passed
    for name in ("workspace.diff", "workspace.patch"):
        written = (bench.output / name).read_bytes()
        assert b"sesame-open" not in written
        assert b"key = <redacted:API_TOKEN>" in written


def test_the_patch_reproduces_the_final_tree(bench, tmp_path: Path) -> None:
    project = bench.project
    for name, content in {
        ".gitattributes": "* text=auto\n*.secret filter=trap\n",
        "crlf.txt": "one\r\ntwo\r\n",
        "old.bin": b"\0\1\2",
        "a.secret": "plain\n",
    }.items():
        project.file(f"fixture/{name}", content)
    fixture = project.root / "fixture"
    final = tmp_path / "final"

    def work(_, options):
        (options.work_dir / "crlf.txt").write_bytes(b"one\r\nthree\r\n")
        (options.work_dir / "old.bin").write_bytes(b"\0\3")
        (options.work_dir / "new.bin").write_bytes(bytes(range(256)))
        (options.work_dir / "run.sh").write_text("#!/bin/sh\n")
        (options.work_dir / "run.sh").chmod(0o755)
        (options.work_dir / "a.secret").unlink()
        (options.work_dir / "link").symlink_to("crlf.txt")
        subprocess.run(["cp", "-a", str(options.work_dir), str(final)], check=True)

    stimulus = bench.stimulus(bench.diff_has("+three\r"), environment=bench.staged((fixture, ".")))
    outcome = bench.run(stimulus, ScriptedExecutor([work]))
    assert outcome.grade.passed
    baseline = tmp_path / "baseline"
    subprocess.run(["cp", "-a", str(fixture), str(baseline)], check=True)
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    env["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    patch = bench.output / "workspace.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=baseline, env=env, check=True)
    subprocess.run(["diff", "-r", "--no-dereference", str(baseline), str(final)], check=True)
    assert (baseline / "run.sh").stat().st_mode & 0o111


def test_a_workspace_that_is_gone_is_told(bench) -> None:
    def remove(_, options):
        options.work_dir.rmdir()

    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([remove]))
    assert outcome.status == "success"
    assert outcome.trajectory.diff_error == "the workspace directory no longer exists"


def test_an_agent_cannot_break_the_measurement(bench) -> None:
    fixture = bench.project.file("a.txt", "a\n")
    line = (
        "git init -q && echo '*' > .git/info/exclude && git add -A -f . ; echo b > a.txt; rm -rf .git; git clean -fdxq"
    )

    async def work(_, options):
        await options.runner.run(["/bin/sh", "-c", line])

    stimulus = bench.stimulus(bench.diff_has("-a\n+b"), environment=bench.staged((fixture, "a.txt")))
    assert bench.run(stimulus, ScriptedExecutor([work])).grade.passed


def test_artifacts_are_kept(bench) -> None:
    artifacts = Artifacts(include=("**/*.txt", "out[1]"), exclude=("private/**",))
    steps = [{"a.txt": "a", "deep/b.txt": "b", "c.md": "c", "private/d.txt": "d", "out[1]": "o", ".hidden.txt": "h"}]
    outcome = bench.run(bench.stimulus(artifacts=artifacts), ScriptedExecutor(steps))
    target = bench.output / "artifacts"
    assert outcome.trajectory.artifact_dir == str(target)
    assert sorted(bench.files_below(target)) == [".hidden.txt", "a.txt", "deep/b.txt", "out[1]"]
    assert outcome.warnings == ()


def test_no_artifact_no_directory(bench) -> None:
    outcome = bench.run(bench.stimulus(artifacts=Artifacts(include=("*.txt",))))
    assert outcome.trajectory.artifact_dir is None
    assert not bench.output.exists()


def test_artifacts_of_a_broken_glob_are_a_warning(bench) -> None:
    outcome = bench.run(bench.stimulus(artifacts=Artifacts(include=("[",))), ScriptedExecutor([{"a": "a"}]))
    assert outcome.status == "success"
    assert outcome.warnings[0].startswith("artifacts were not copied: ")


def test_trouble_with_the_output_directory_is_a_warning(bench) -> None:
    bench.output.parent.mkdir(parents=True)
    bench.output.write_text("in the way")
    artifacts = Artifacts(include=("a",))
    outcome = bench.run(
        bench.stimulus(bench.diff_has("+a"), artifacts=artifacts), ScriptedExecutor([{"a": "a" * LIMIT}])
    )
    assert outcome.status == "success"
    assert outcome.grade.passed
    assert len(outcome.warnings) == 3
    assert outcome.trajectory.diff is not None


def test_without_an_output_directory_everything_stays_in_memory(bench) -> None:
    stimulus = bench.stimulus(bench.diff_has("+a"), artifacts=Artifacts(include=("a",)))
    outcome = bench.run(stimulus, ScriptedExecutor([{"a": "a" * LIMIT}]), output_dir=None, run_dir=None)
    assert (len(outcome.trajectory.diff) > LIMIT, outcome.trajectory.artifact_dir) == (True, None)


def test_a_trajectory_that_an_executor_hands_out_twice_is_copied(bench) -> None:
    from vally.testing import trajectory

    class Same(ScriptedExecutor):
        one = trajectory()

        async def execute(self, stimulus, options):
            (options.work_dir / "a").write_text("a\n")
            return self.one

    executor = Same()
    outcome = bench.run(bench.stimulus(bench.diff_has("+a")), executor)
    assert outcome.trajectory.diff
    assert (executor.one.diff, executor.one.work_dir) == (None, "")
