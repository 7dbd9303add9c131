"""Stands in for llama.cpp: the model file is a script of replies, one JSON object per line, the last one for ever.

Keys of a reply: `content` and `finish_reason`, `error`, `crash`, `hang`. Beside the script, `.count` counts the calls
and `.seen` has what was asked and under which conditions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def environment_of_children() -> str:
    """OMP_WAIT_POLICY as the C library sees it, which is how OpenMP does."""
    code = "import os; print(os.environ.get('OMP_WAIT_POLICY', ''))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0)
        self.cpuparams_batch = SimpleNamespace(n_threads=0)


class Server:
    def __init__(self, params: Any) -> None:
        self._script = Path(params.model.path)
        print("llama.cpp says hello")  # which must not disturb the protocol
        text = self._script.read_text(encoding="utf-8")
        if not text.startswith("{"):
            raise RuntimeError("Failed to init server,\nplease check the input params.")
        self._replies = [json.loads(line) for line in text.splitlines()]
        self._threads = (params.cpuparams.n_threads, params.cpuparams_batch.n_threads)
        self._protected = bool(params.api_keys)

    def handle_chat_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        counter = self._script.with_suffix(".count")
        count = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(count + 1))
        facts = {"threads": self._threads, "omp": environment_of_children(), "protected": self._protected}
        with self._script.with_suffix(".seen").open("a", encoding="utf-8") as seen:
            seen.write(json.dumps({**facts, "body": body, "pid": os.getpid()}) + "\n")
        reply = self._replies[min(count, len(self._replies) - 1)]
        if reply.get("crash"):
            os._exit(7)
        if reply.get("hang"):
            time.sleep(600)
        if reply.get("raise"):
            raise ValueError(reply["raise"])
        if "error" in reply:
            return {"error": {"code": 400, "message": reply["error"]}}
        choice = {"message": {"content": reply["content"]}, "finish_reason": reply.get("finish_reason", "stop")}
        return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
