"""A plugin that misbehaves: what it does wrong is the prompt of the stimulus or the config of the entry.

Loaded by path into the program, and imported by tests that run it in their own process.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vally import (
    BackendSpec,
    Capabilities,
    Config,
    Event,
    ExecutorError,
    ExecutorSpec,
    GraderResult,
    GraderSpec,
    ReporterSpec,
    Trajectory,
    TrajectoryBuilder,
    hookimpl,
)

NOTHING = Capabilities()


def built(stimulus: Any, options: Any, text: str = "hello") -> Trajectory:
    builder = TrajectoryBuilder(stimulus, options, executor="bad", version="1")
    builder.user_message(stimulus.turns[0])
    builder.assistant_message(text)
    return builder.finish("completed")


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"a": 1}
    value["self"] = value
    value["again"] = [value, value]
    return value


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class BadExecutor:
    """Does what the prompt says, in a thread."""

    def execute(self, stimulus: Any, options: Any) -> Any:
        word = stimulus.turns[0]
        if word == "hang":
            time.sleep(600)
        if word == "raise":
            raise OSError("no such device")
        if word == "unprintable":
            raise Unprintable
        if word == "exit":
            sys.exit(0)
        if word == "stop-iteration":
            raise StopIteration
        if word == "none":
            return None
        if word == "text":
            return "done"
        if word == "escape":
            raise ExecutorError("\x1b[2Jcleared\r\n::error::x\x07", code="agent-crashed")
        found = built(stimulus, options)
        if word == "nan":
            found.metadata.update({"nan": float("nan"), "inf": [float("-inf")]})
            found.events.append(Event(type="custom", data={"eventType": "x", "value": float("nan")}))
        if word == "surrogate":
            found.metadata["text"] = "a\ud800b\u2028c"
            found.output = "hello \udfff"
        if word == "cyclic":
            found.metadata["loop"] = cyclic()
            found.events.append(Event(type="custom", data=cyclic()))
        if word == "objects":
            found.metadata["object"] = {"set": {1}, "path": Path("x"), "bytes": b"\xff", "self": object}
        if word == "wrong-types":
            found = found.model_copy(update={"events": [1, None, "x"], "output": 3, "metadata": None})
        if word == "huge":
            chunk = "x" * (1 << 20)
            found.events += [
                Event(
                    type="tool_result",
                    data={"toolCallId": f"c{number}", "success": True, "result": f"{number:04}{chunk[4:]}"},
                )
                for number in range(200)
            ]
        if word == "print":
            print("printed by an executor")
            subprocess.run([sys.executable, "-c", "print('printed by its child')"], check=True)
        return found

    def shutdown(self) -> None:
        return None


class AsyncExecutor:
    """The same in the event loop, and what only tasks can do."""

    async def execute(self, stimulus: Any, options: Any) -> Any:
        word = stimulus.turns[0]
        if word == "hang":
            await asyncio.sleep(600)
        if word == "hang-thread":
            await asyncio.to_thread(time.sleep, 600)
        if word == "block":
            (Path(os.environ["SEEN"]) / "ready").touch()
            time.sleep(600)
        if word == "exit":
            sys.exit(0)
        if word == "cancel":
            raise asyncio.CancelledError
        if word == "raise":
            raise OSError("no such device")
        if word == "wait":
            (Path(os.environ["SEEN"]) / f"waits-{options.trial_id}").touch()
            (Path(os.environ["SEEN"]) / "ready").touch()
            await options.stop.wait()
        return built(stimulus, options)

    async def shutdown(self) -> None:
        return None


class BadEnd(BadExecutor):
    """Works, and then does not end: the word is the name of the executor."""

    def __init__(self, word: str) -> None:
        self._word = word

    def execute(self, stimulus: Any, options: Any) -> Any:
        return built(stimulus, options)

    def shutdown(self) -> None:
        _end(self._word.removeprefix("shutdown-"), self._word.startswith("shutdown-"))

    def cleanup(self, trial_id: str, *, preserve_workspace: bool) -> None:
        _end(self._word.removeprefix("cleanup-"), self._word.startswith("cleanup-"))


def _end(word: str, wanted: bool) -> None:
    if not wanted:
        return
    if word == "hang":
        time.sleep(600)
    if word == "exit":
        sys.exit(0)
    raise OSError("no such device")


def bad_end(word: str) -> ExecutorSpec:
    return ExecutorSpec(name=word, summary="ends badly", factory=lambda: BadEnd(word), capabilities=NOTHING)


class GraderConfig(Config):
    do: str


class BadGrader:
    """Does what its config says."""

    def default_name(self, config: GraderConfig) -> str:
        if config.do == "name-raise":
            raise OSError("no such device")
        if config.do == "name-exit":
            sys.exit(0)
        return f"bad {config.do}"

    def grade(self, grader_input: Any) -> Any:
        word = grader_input.config.do
        good = GraderResult.verdict(True, "fine", name="bad", kind="code")
        if word == "hang":
            time.sleep(600)
        if word == "raise":
            raise OSError("no such device")
        if word == "unprintable":
            raise Unprintable
        if word == "exit":
            sys.exit(0)
        if word == "none":
            return None
        if word == "mapping":
            return {"score": "high"}
        if word == "mutate":
            found = grader_input.full_trajectory
            found.events.clear()
            found.metadata["forged"] = True
            found.output = "forged"
            grader_input.trajectory.events.append("junk")
        if word == "print":
            print("printed by a grader")
            subprocess.run([sys.executable, "-c", "print('printed by its child')"], check=True)
        if word == "cyclic":
            return good.model_copy(update={"metadata": cyclic()})
        values: dict[str, Any] = {"nan": float("nan"), "two": 2, "minus": -0.5, "text-score": "1", "no-score": None}
        if word in values:
            return good.model_copy(update={"score": values[word]})
        if word == "no-evidence":
            return good.model_copy(update={"evidence": None})
        if word == "own-detail":
            good.details = [good]
        return good


class AsyncGrader:
    """Does in the event loop what its config says."""

    async def grade(self, grader_input: Any) -> Any:
        word = grader_input.config.do
        if word == "hang":
            await asyncio.sleep(600)
        if word == "cancel":
            raise asyncio.CancelledError
        if word == "exit":
            sys.exit(0)
        return GraderResult.verdict(True, "fine", name="abad", kind="code")


class Reporter:
    """Does what the variable says, in the hook that it names: `<hook>:<word>`."""

    def __init__(self, do: str) -> None:
        self._hook, _, self._word = do.partition(":")

    def _act(self, hook: str) -> None:
        if hook != self._hook:
            return
        if self._word == "raise":
            raise OSError("no such device")
        if self._word == "pipe":
            raise BrokenPipeError(32, "Broken pipe")
        if self._word == "exit":
            sys.exit(0)
        if self._word == "sleep":
            time.sleep(0.3)
        if self._word == "hang":
            time.sleep(600)

    def on_run_start(self, event: Any) -> None:
        self._act("on_run_start")

    def on_trial_start(self, event: Any) -> None:
        self._act("on_trial_start")

    def on_trial_phase(self, event: Any) -> None:
        self._act("on_trial_phase")

    def on_trial_result(self, event: Any) -> None:
        self._act("on_trial_result")

    def on_diagnostics(self, event: Any) -> None:
        self._act("on_diagnostics")

    def on_eval_complete(self, event: Any) -> None:
        self._act("on_eval_complete")

    def on_run_complete(self, event: Any) -> Any:
        self._act("on_run_complete")
        return {"Bad": 7} if self._word == "artifact" else None


def reporter(do: str) -> ReporterSpec:
    return ReporterSpec(name="bad", summary="misbehaves", factory=lambda: Reporter(do), order=15)


class Backend:
    """Runs nothing well; `do` is its word."""

    def __init__(self, do: str) -> None:
        self._do = do
        self.begun = 0
        self.shutdowns = 0

    async def prepare(self, args: Any, context: Any) -> None:
        if self._do == "prepare-raise":
            raise OSError("no such device")
        if self._do == "prepare-exit":
            sys.exit(0)

    async def run_trial(self, item: Any, options: Any) -> Any:
        if self._do == "raise-together":
            self.begun += 1
            while self.begun < item.total_trials:
                await asyncio.sleep(0)
        if self._do in ("raise-first", "raise-together") and item.trial_index == 0:
            raise OSError("no such device")
        if self._do == "exit":
            sys.exit(0)
        if self._do == "none":
            return None
        if self._do == "text":
            return "fine"
        return Outcome(self._do)

    async def grade_trial(self, request: Any) -> Any:
        raise NotImplementedError

    async def shutdown(self) -> None:
        self.shutdowns += 1
        if self._do == "shutdown-raise":
            raise OSError("no such device")


class Outcome:
    status = "success"
    trajectory = None
    grade = None
    error = None
    skip_reason = None
    retry_after_ms = None
    work_dir = None
    phases = None
    warnings: Any = ()
    judge_usage = None

    def __init__(self, do: str) -> None:
        if do == "warnings":
            self.warnings = 3
        if do == "trajectory":
            self.trajectory = "a trajectory"
        self._do = do

    async def cleanup(self) -> Any:
        if self._do == "cleanup-raise":
            raise OSError("no such device")
        return None


def backend(do: str) -> tuple[BackendSpec, Backend]:
    made = Backend(do)
    return BackendSpec(name="bad", summary="misbehaves", factory=lambda: made), made


EXECUTORS = [
    ExecutorSpec(name="bad", summary="misbehaves", factory=BadExecutor, capabilities=NOTHING),
    ExecutorSpec(name="abad", summary="misbehaves", factory=AsyncExecutor, capabilities=NOTHING),
    *(bad_end(f"{method}-{word}") for method in ("shutdown", "cleanup") for word in ("hang", "raise", "exit")),
]
GRADERS = [
    GraderSpec(name="bad", summary="misbehaves", factory=BadGrader, config=GraderConfig),
    GraderSpec(name="abad", summary="misbehaves", factory=AsyncGrader, config=GraderConfig),
]


@hookimpl
def vally_executors() -> Any:
    yield from EXECUTORS


@hookimpl
def vally_graders() -> Any:
    yield from GRADERS


@hookimpl
def vally_reporters() -> Any:
    yield reporter(os.environ.get("BAD_REPORTER", ""))
