"""The process of the model: one JSON object per line, questions on stdin, answers on stdout.

A process of its own can be ended in the middle of an answer, takes its memory with it, and cannot take down the run.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any

CONTEXT_TOKENS = 8192


def main(path: str, threads: int) -> None:
    """Load a model, say so, and answer until stdin ends."""
    answers = _own_stdout()
    try:
        server = _load(path, threads)
    except Exception as error:
        _write(answers, {"error": f"llama.cpp cannot load '{path}': {_text(error)}"})
        return
    _write(answers, {"ready": True})
    for question in _questions():
        _write(answers, _answer(server, question))


def _own_stdout() -> IO[str]:
    # Whatever the library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _load(path: str, threads: int) -> Any:
    # Threads that spin while they wait take the processor from those that work; it is read when the library is loaded.
    os.putenv("OMP_WAIT_POLICY", "passive")
    import xllamacpp  # type: ignore[import-untyped]  # it has no stubs

    wanted = xllamacpp.CommonParams()
    wanted.model.path = path
    wanted.n_ctx = CONTEXT_TOKENS
    wanted.n_parallel = 1
    wanted.warmup = False
    wanted.verbosity = -1
    wanted.cpuparams.n_threads = threads
    wanted.cpuparams_batch.n_threads = threads
    # The library opens a port on the loopback interface, whether one wants it or not. Nobody gets the key.
    wanted.api_keys = [secrets.token_hex()]
    return xllamacpp.Server(wanted)


def _questions() -> Iterator[dict[str, Any]]:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    while True:
        yield json.loads(lines.get())


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    # Nobody is there any more, also when an answer is just being written.
    os._exit(0)


def _answer(server: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    try:
        reply = server.handle_chat_completions(dict(question))
    except Exception as error:
        return {"error": _text(error)}
    if "error" in reply:
        return {"error": str(reply["error"].get("message", reply["error"]))}
    choice, usage = reply["choices"][0], reply["usage"]
    return {
        "content": choice["message"]["content"] or "",
        "finished": choice["finish_reason"] == "stop",
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
    }


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _write(answers: IO[str], value: Mapping[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()
