"""The tool `bash`: one shell per call, in the workspace, with a time limit."""

from __future__ import annotations

from functools import partial

import anyio

from vally import Completed, ExecutorOptions, Process, ProcessStartError, communicate
from vally_executor_openai_tools.clipping import HeadAndTail
from vally_executor_openai_tools.outcome import Outcome, ToolError

# Both outputs come through one pipe, in their order; the command stays an argument of its own.
_MERGED = 'exec /bin/sh -c "$1" 2>&1'


async def run_command(command: str, options: ExecutorOptions, *, timeout_ms: int, output_bytes: int) -> Outcome:
    """Run a command to its end or its time limit; what it left in its process group is ended with it.

    When cancelled, everything in the group is killed at once.
    """
    if "\0" in command:
        raise ToolError("the command holds a NUL character", "invalid-arguments")
    argv = ["/bin/sh", "-c", _MERGED, "sh", command]
    try:
        process = await options.runner.start(argv, cwd=options.work_dir, env=options.env)
    except ProcessStartError as error:
        # Too long for an argument, or no shell in a container: the agent may try something else.
        raise ToolError(error.message) from None
    output = HeadAndTail(output_bytes)
    try:
        done = await _communicate(process, output, timeout_ms)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await process.kill()
        raise
    await process.terminate()
    await _close(process)
    return _outcome(done, output.text(), timeout_ms)


async def _close(process: Process) -> None:
    """Close the pipes now: an agent may run more commands than a process may have open files."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()


async def _communicate(process: Process, output: HeadAndTail, timeout_ms: int) -> Completed:
    until = partial(anyio.sleep, timeout_ms / 1000)
    return await communicate(process, max_bytes=0, until=until, on_output=output.add)


def _outcome(done: Completed, text: str, timeout_ms: int) -> Outcome:
    head = f"{text}\n" if text and not text.endswith("\n") else text
    if done.timed_out:
        ended = f"{head}[timed out after {timeout_ms / 1000:g}s]"
        return Outcome(text=ended, success=False, error_code="timeout")
    if done.signal is not None:
        return Outcome(text=f"{head}[ended by {done.signal}]", success=False, error_code="signal")
    return Outcome(text=f"{head}[exit code {done.returncode}]", exit_code=done.returncode)
