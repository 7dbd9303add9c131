"""The executor of oracle runs: instead of an agent, what is known to be right happens."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vally import (
    Capabilities,
    Completed,
    ExecutorError,
    ExecutorOptions,
    ExecutorSpec,
    ProcessStartError,
    ReadyExecutor,
    Trajectory,
    TrajectoryBuilder,
    TurnComplete,
    parse_duration,
)

if TYPE_CHECKING:
    from vally import Stimulus
    from vally_command_oracle.golden import Golden, GoldenCommand

NAME = "golden-input"
GIT_SECONDS = 120.0
TAIL = 2_000
EVERYTHING = Capabilities(
    multi_turn=True,
    turn_completion=True,
    mcp=True,
    skills=True,
    env=True,
    attachments=True,
    simulation=True,
    reasoning_effort=True,
    isolation=True,
)


def golden_executor(inputs: Mapping[str, Golden], *, withhold: bool) -> ReadyExecutor:
    """The executor that applies the golden input of each item, by item id, or nothing at all."""
    instance = GoldenExecutor(inputs, withhold=withhold)
    record = ExecutorSpec(
        name=NAME, summary="applies golden inputs", factory=lambda: instance, capabilities=EVERYTHING, blocking=False
    )
    return ReadyExecutor(record, instance)


class GoldenExecutor:
    """Changes the workspace as the golden patch or command does, and returns the golden trajectory or an empty one."""

    def __init__(self, inputs: Mapping[str, Golden], *, withhold: bool) -> None:
        self._inputs = inputs
        self._withhold = withhold

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Apply the golden input of the item. Raises `ExecutorError` when that fails."""
        empty = TrajectoryBuilder(stimulus, options, executor=NAME).finish("unknown")
        if self._withhold:
            return empty
        golden = self._inputs[options.item_id]
        if golden.problem is not None:
            raise _failed(golden.problem, "golden-input-invalid")
        if golden.patch is not None:
            await _apply_patch(golden.patch, options)
        if golden.command is not None:
            await _run_command(golden.command, options)
        if len(stimulus.turns) == 1:
            await options.on_turn_complete(TurnComplete(0, final=True))
        if golden.trajectory is None:
            return empty
        return golden.trajectory.model_copy(
            update={"id": empty.id, "stimulus": empty.stimulus, "work_dir": empty.work_dir}
        )

    async def shutdown(self) -> None:
        """Nothing is left running."""


async def _apply_patch(patch: str, options: ExecutorOptions) -> None:
    """Apply a patch with git, in a repository of its own, whatever repository the workspace lies in."""
    file = options.trial_dir / "golden.patch"
    file.write_bytes(patch.encode("utf-8", "surrogateescape"))
    git_dir = options.trial_dir / "golden.git"
    await _git(["init", "--quiet", "--bare", str(git_dir)], options, {})
    # Git leaves out what lies outside of the repository that it finds; this one is the workspace exactly.
    place = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(options.work_dir)}
    listed = await _git(["apply", "--numstat", "-z", str(file)], options, place)
    paths = _paths(listed.stdout)
    before = _digests(options.work_dir, paths)
    await _git(["apply", "--whitespace=nowarn", str(file)], options, place)
    if before == _digests(options.work_dir, paths):
        raise _failed("golden_patch changes no file", "golden-patch-failed")


def _paths(listing: bytes) -> list[str]:
    """Paths of `git apply --numstat -z`: counts, a tab and the path; of a renamed file the old and the new one."""
    fields = [field.decode("utf-8", "surrogateescape") for field in listing.split(b"\0") if field]
    return [name for field in fields if (name := field.split("\t", 2)[-1])]


def _digests(root: Path, paths: list[str]) -> list[tuple[str, int, bytes] | None]:
    """Kind, mode and content of files; None for what is not there."""
    return [_digest(root / path) for path in paths]


def _digest(path: Path) -> tuple[str, int, bytes] | None:
    try:
        if path.is_symlink():
            return "link", 0, os.fsencode(path.readlink())
        return "file", path.stat().st_mode & 0o111, hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return None


async def _git(words: list[str], options: ExecutorOptions, place: Mapping[str, str]) -> Completed:
    # Neither the user's settings nor those of the workspace may change what a patch does.
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(options.work_dir.parent),
    }
    argv = ["git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", *words]
    env = {**options.env, **own, **place}
    try:
        done = await _run(argv, options, env, GIT_SECONDS)
    except ProcessStartError as error:
        raise _failed(f"golden_patch needs git: {error.message}", "golden-patch-failed") from error
    if done.returncode != 0:
        raise _failed(f"golden_patch does not apply: {_last_words(done)}", "golden-patch-failed")
    return done


async def _run_command(golden: GoldenCommand, options: ExecutorOptions) -> None:
    argv = _shell(golden.command) if golden.args is None else [golden.command, *golden.args]
    env = {**options.env, **golden.env}
    try:
        done = await _run(argv, options, env, parse_duration(golden.timeout) / 1000)
    except ProcessStartError as error:
        raise _failed(f"golden_command failed: {error.message}", "golden-command-failed") from error
    if done.timed_out:
        raise _failed(f"golden_command timed out after {golden.timeout}", "golden-command-timeout")
    if done.returncode != 0:
        how = f"exit {done.returncode}" if done.returncode is not None else str(done.signal)
        raise _failed(f"golden_command failed ({how}): {_last_words(done)}", "golden-command-failed")


async def _run(argv: list[str], options: ExecutorOptions, env: Mapping[str, str], seconds: float) -> Completed:
    """Run a program in the workspace until it ends or the trial is to stop. Raises `ExecutorError` then."""
    import anyio

    done: Completed | None = None
    problem: ProcessStartError | None = None

    async def watch(scope: anyio.CancelScope) -> None:
        await options.stop.wait()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        try:
            done = await options.runner.run(argv, cwd=options.work_dir, env=env, timeout=seconds)
        except ProcessStartError as error:
            # Out of a group it would come as a group.
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem
    if done is None:
        raise _failed("the golden input was not applied in time", options.stop.reason or "cancelled")
    return done


def _shell(line: str) -> list[str]:
    return ["cmd.exe", "/d", "/s", "/c", line] if sys.platform == "win32" else ["/bin/sh", "-c", line]


def _last_words(done: Completed) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")[-TAIL:].splitlines()
    return " | ".join(line.removeprefix("error: ") for line in lines) or "it printed nothing"


def _failed(message: str, code: str) -> ExecutorError:
    return ExecutorError(message, code=code)
