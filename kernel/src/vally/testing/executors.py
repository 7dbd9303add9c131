"""An executor that follows a script of Python values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.model.evalspec import Stimulus
    from vally.model.trajectory import Trajectory
    from vally.records import Capabilities, ExecutorSpec
    from vally.run.builder import TrajectoryBuilder
    from vally.run.inputs import ExecutorOptions

Step = Any
"""What the agent does next.

A string is said; an event is recorded; a mapping path -> text is files it writes; a `Wait` takes time; an exception is
raised; a function `(stimulus, options)`, sync or async, returns None, a step or a list of steps.
"""


@dataclass(frozen=True, slots=True)
class Wait:
    """The agent takes this long, unless it is stopped."""

    seconds: float


class ScriptedExecutor:
    """Follows a script; `options` collects what each call was given, in order.

    The script is a list of steps for the first prompt, a list of such lists for several turns, or a mapping from
    stimulus names to either. `end_reason` is that of an agent that was not stopped.
    """

    def __init__(
        self, script: Sequence[Step] | Mapping[str, Sequence[Step]] = ("done",), *, end_reason: str = "completed"
    ) -> None:
        self._script = script
        self._end_reason = end_reason
        self.options: list[ExecutorOptions] = []
        self.shutdowns = 0

    def record(self, name: str = "scripted", *, capabilities: Capabilities | None = None) -> ExecutorSpec:
        """The record of this very object, for `plugin_host` and `run_cli`; by default it can do everything."""
        from vally.records import Capabilities, ExecutorSpec

        everything = Capabilities(**dict.fromkeys(Capabilities.__dataclass_fields__, True))
        return ExecutorSpec(
            name=name,
            summary="follows a script",
            factory=lambda: self,
            capabilities=everything if capabilities is None else capabilities,
        )

    async def execute(self, stimulus: Stimulus, options: ExecutorOptions) -> Trajectory:
        """Play the script of the stimulus."""
        from vally.run.builder import TrajectoryBuilder
        from vally.run.inputs import TurnComplete

        self.options.append(options)
        builder = TrajectoryBuilder(stimulus, options, executor="scripted", version="1")
        for turn, prompt in enumerate(stimulus.turns):
            builder.user_message(prompt)
            builder.turn_start()
            for step in self._steps(stimulus, turn):
                if options.stop.reason is None:
                    await self._perform(step, builder, stimulus, options)
            if options.stop.reason is not None:
                return builder.finish_stopped()
            builder.turn_end()
            await options.on_turn_complete(TurnComplete(turn, turn == len(stimulus.turns) - 1))
        return builder.finish(self._end_reason)

    async def shutdown(self) -> None:
        """Count the call."""
        self.shutdowns += 1

    def _steps(self, stimulus: Stimulus, turn: int) -> Sequence[Step]:
        script = self._script.get(stimulus.name, ()) if isinstance(self._script, Mapping) else self._script
        if script and all(isinstance(part, list | tuple) for part in script):
            return script[turn] if turn < len(script) else ()
        return script if turn == 0 else ()

    async def _perform(
        self, step: Step, builder: TrajectoryBuilder, stimulus: Stimulus, options: ExecutorOptions
    ) -> None:
        from vally.model.trajectory import Event

        if isinstance(step, str):
            builder.assistant_message(step)
        elif isinstance(step, Event):
            builder.record(step)
        elif isinstance(step, Wait):
            await _wait(step.seconds, options)
        elif isinstance(step, BaseException):
            raise step
        elif isinstance(step, Mapping):
            _write(step, builder, options)
        elif callable(step):
            await self._call(step, builder, stimulus, options)
        else:
            raise TypeError(f"{type(step).__name__} is not a step of a script")

    async def _call(
        self, function: Callable[..., Any], builder: TrajectoryBuilder, stimulus: Stimulus, options: ExecutorOptions
    ) -> None:
        result = function(stimulus, options)
        if inspect.isawaitable(result):
            result = await result
        for step in result if isinstance(result, list | tuple) else [] if result is None else [result]:
            await self._perform(step, builder, stimulus, options)


async def _wait(seconds: float, options: ExecutorOptions) -> None:
    import anyio

    with anyio.move_on_after(seconds):
        await options.stop.wait()


def _write(files: Mapping[str, str], builder: TrajectoryBuilder, options: ExecutorOptions) -> None:
    for name, text in files.items():
        call = builder.tool_call("write", arguments={"path": name, "content": text})
        target = options.work_dir / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        builder.tool_result(call.data["toolCallId"], success=True, result="written", tool="write")
