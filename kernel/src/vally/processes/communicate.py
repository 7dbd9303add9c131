"""One exchange with a started process: feed it, read it, wait for it, end it when its time is over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from vally.processes.output import OutputBuffer, send_all, settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vally.processes.result import Completed
    from vally.run.inputs import Process


async def communicate(
    process: Process,
    *,
    stdin: bytes = b"",
    max_bytes: int,
    until: Callable[[], Awaitable[object]] | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Send `stdin`, close it, and collect both outputs until the process has ended.

    At most `max_bytes` of each output are kept; `on_output` gets every piece of stdout as it comes. When the awaitable
    of `until` returns first, the process and its group are ended and `timed_out` is true. What a process leaves behind
    when it ends by itself runs on, and is not waited for when it holds the pipes open.
    """
    out, err = OutputBuffer(max_bytes, on_output), OutputBuffer(max_bytes)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(out.fill, process.stdout)
        tasks.start_soon(err.fill, process.stderr)
        if process.stdin is not None:
            tasks.start_soon(send_all, process.stdin, stdin)
        stopped = await _wait(process, until)
        if stopped:
            await process.terminate()
        ended = await process.wait()
        await settle((out, err))
        tasks.cancel_scope.cancel()
    return replace(
        ended,
        stdout=out.content,
        stderr=err.content,
        stdout_truncated=out.truncated,
        stderr_truncated=err.truncated,
        timed_out=stopped,
    )


async def _wait(process: Process, until: Callable[[], Awaitable[object]] | None) -> bool:
    """Wait for the end of the process; true when `until` returned before."""
    if until is None:
        await process.wait()
        return False
    ended = stopped = False
    async with anyio.create_task_group() as tasks:

        async def limit() -> None:
            nonlocal stopped
            await until()
            stopped = True
            tasks.cancel_scope.cancel()

        tasks.start_soon(limit)
        await process.wait()
        ended = True
        tasks.cancel_scope.cancel()
    return stopped and not ended
