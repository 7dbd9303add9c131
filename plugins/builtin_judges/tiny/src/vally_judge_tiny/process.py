"""The model as its judge sees it: a process that is started when first asked, and again when it ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from vally import EndpointError

_START = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from vally_judge_tiny.worker import main; main(sys.argv[1], int(sys.argv[2]))"
)
_LONGEST_ANSWER = 2**22
_ENDED = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead)


class ModelProcess:
    """One model. It answers one question at a time; others wait."""

    def __init__(self, path: Path, threads: int) -> None:
        self._path = path
        self._threads = threads
        self._turn = anyio.Lock()
        self._stopped = False
        self._process: Process | None = None
        self._answers: BufferedByteReceiveStream | None = None

    async def complete(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a chat completion; raises `EndpointError`, retryable when the process ended by itself."""
        async with self._turn:
            try:
                if self._stopped:
                    raise EndpointError("the judge was shut down")
                if self._process is None:
                    await self._start()
                answer = await self._exchange(question)
            except _ENDED:
                await self._end()
                raise EndpointError("the process of the model ended", retryable=True) from None
            except BaseException:
                # Cancelled in the middle, it would give this answer to the next question.
                await self._end()
                raise
        if "error" in answer:
            raise EndpointError(str(answer["error"]))
        return answer

    async def stop(self) -> None:
        """End the process, if there is one, for good; a question that is being answered fails."""
        self._stopped = True
        await self._end()

    async def _start(self) -> None:
        # -I keeps variables and directories of the user's Python out; a session of its own keeps an interrupt of the
        # terminal from it, with which a run ends in good order.
        command = [sys.executable, "-I", "-c", _START, str(self._path), str(self._threads), *filter(None, sys.path)]
        self._process = await anyio.open_process(command, stderr=subprocess.DEVNULL, start_new_session=True)
        assert self._process.stdout is not None
        self._answers = BufferedByteReceiveStream(self._process.stdout)
        ready = await self._receive()
        if "error" in ready:
            raise EndpointError(str(ready["error"]))

    async def _exchange(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.send(json.dumps(question).encode() + b"\n")
        return await self._receive()

    async def _receive(self) -> dict[str, Any]:
        assert self._answers is not None
        line = await self._answers.receive_until(b"\n", _LONGEST_ANSWER)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _end(self) -> None:
        process, self._process, self._answers = self._process, None, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
