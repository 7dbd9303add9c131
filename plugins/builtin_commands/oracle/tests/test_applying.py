"""Golden patches and commands in a workspace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import ExecutorError, Trajectory
from vally.testing import executor_options, stimulus
from vally_command_oracle.applying import golden_executor
from vally_command_oracle.golden import Golden, GoldenCommand

NEW = "--- /dev/null\n+++ b/sub/new.txt\n@@ -0,0 +1 @@\n+hello\n"
CHANGE = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"


def apply(tmp_path: Path, golden: Golden, *, withhold: bool = False, **fields: Any) -> Trajectory:
    options = executor_options(tmp_path, **fields)
    ready = golden_executor({options.item_id: golden}, withhold=withhold)

    async def run() -> Trajectory:
        try:
            found = await ready.instance.execute(stimulus("Do it."), options)
        finally:
            await options.runner.kill_all()
        assert isinstance(found, Trajectory)
        return found

    return anyio.run(run)


def patch(text: str) -> Golden:
    return Golden(patch=text, kind="patch")


def command(line: str, **fields: Any) -> Golden:
    return Golden(command=GoldenCommand(command=line, **{"env": {}, **fields}), kind="command")


def test_a_patch_makes_and_changes_files(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("old\n")
    found = apply(tmp_path, patch(CHANGE + NEW))
    assert (work / "a.txt").read_text() == "new\n"
    assert (work / "sub" / "new.txt").read_text() == "hello\n"
    assert sorted(item.name for item in work.iterdir()) == ["a.txt", "sub"]
    assert (found.events, found.output, found.end_reason) == ([], "", "unknown")


def test_a_workspace_inside_another_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    apply(tmp_path, patch(NEW))
    assert (tmp_path / "work" / "sub" / "new.txt").read_text() == "hello\n"


def test_settings_of_the_workspace_change_nothing(tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "config", "core.autocrlf", "true"], check=True)
    before = (work / ".git" / "config").read_bytes()
    (work / "a.txt").write_bytes(b"one\r\n")
    apply(tmp_path, patch("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\r\n+two\r\n"))
    assert (work / "a.txt").read_bytes() == b"two\r\n"
    assert (work / ".git" / "config").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHANGE, "golden_patch does not apply: a.txt: No such file or directory"),
        ("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+two\n", "golden_patch does not apply: patch failed: b.txt:1"),
        ("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-two\n+two\n", "golden_patch changes no file"),
        (
            "--- /dev/null\n+++ b/../out.txt\n@@ -0,0 +1 @@\n+x\n",
            "golden_patch does not apply: invalid path '../out.txt'",
        ),
    ],
)
def test_a_patch_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b.txt").write_text("two\n")
    with pytest.raises(ExecutorError) as caught:
        apply(tmp_path, patch(text))
    assert caught.value.message.startswith(message)
    assert caught.value.code == "golden-patch-failed"
    assert not (tmp_path / "out.txt").exists()


def test_a_patch_does_not_follow_a_link_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "sub").symlink_to(outside)
    with pytest.raises(ExecutorError):
        apply(tmp_path, patch(NEW))
    assert list(outside.iterdir()) == []


def test_commands_with_and_without_a_shell(tmp_path: Path) -> None:
    apply(tmp_path, command("echo $WORD > said.txt", env={"WORD": "hello"}))
    assert (tmp_path / "work" / "said.txt").read_text() == "hello\n"
    script = "import sys; open('args.txt', 'w').write(sys.argv[1])"
    apply(tmp_path, command(sys.executable, args=("-c", script, "$HOME; x")))
    assert (tmp_path / "work" / "args.txt").read_text() == "$HOME; x"


@pytest.mark.parametrize(
    ("golden", "message", "code"),
    [
        (command("echo no way >&2; exit 3"), "golden_command failed (exit 3): no way", "golden-command-failed"),
        (command("exit 1"), "golden_command failed (exit 1): it printed nothing", "golden-command-failed"),
        (command("no-such-program", args=()), "golden_command failed: ", "golden-command-failed"),
        (command("sleep 60", timeout="100ms"), "golden_command timed out after 100ms", "golden-command-timeout"),
        (Golden(kind="patch", problem="golden_patch: gone"), "golden_patch: gone", "golden-input-invalid"),
    ],
)
def test_a_command_that_fails(golden: Golden, message: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(ExecutorError) as caught:
        apply(tmp_path, golden)
    assert caught.value.message.startswith(message)
    assert caught.value.code == code


def test_the_golden_trajectory_in_the_place_of_the_trial(tmp_path: Path) -> None:
    golden = Golden(trajectory=Trajectory(id="other", output="done", work_dir="/elsewhere"), kind="trajectory")
    found = apply(tmp_path, golden, trial_id="t-1")
    assert (found.output, found.work_dir) == ("done", str(tmp_path.resolve() / "work"))
    assert found.id != "other"


def test_nothing_happens_when_the_input_is_withheld(tmp_path: Path) -> None:
    golden = Golden(patch=NEW, trajectory=Trajectory(output="done"), kind="patch+trajectory")
    found = apply(tmp_path, golden, withhold=True)
    assert (found.output, found.events) == ("", [])
    assert list((tmp_path / "work").iterdir()) == []
