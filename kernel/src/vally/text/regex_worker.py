"""The helper process that finishes one slow match, and the call that starts it.

The engine counts processor time of its whole process, so among busy threads its limit comes early, and on a starved
machine late. A process of its own can be given elapsed time, because it can be killed.
"""

from __future__ import annotations

import json
import subprocess
import sys

from vally.text.regex_engine import Engine, EngineFailure, EngineInterrupted, Spans

_START = "import sys; sys.path[:] = sys.argv[1:]; from vally.text.regex_worker import main; main()"


def search_elsewhere(source: str, flags: str, text: str, time_limit: float) -> Spans | None:
    """Run one search in a helper process with `time_limit` seconds of elapsed time.

    The time starts when the helper is ready. Raises EngineInterrupted and EngineFailure; leaves no process behind.
    """
    request = json.dumps({"source": source, "flags": flags, "text": text, "limit": time_limit}).encode("ascii")
    with _started() as helper:
        try:
            return _converse(helper, request, time_limit)
        finally:
            helper.kill()


def _started() -> subprocess.Popen[bytes]:
    # -I keeps the working directory and PYTHON* variables of an eval out of the helper; a session of its own keeps
    # an interrupt of the terminal from it, with which a run ends in good order.
    command = [sys.executable, "-I", "-c", _START, *(entry for entry in sys.path if entry)]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineFailure(f"the regular expression helper cannot be started: {error}") from None


def _converse(helper: subprocess.Popen[bytes], request: bytes, time_limit: float) -> Spans | None:
    assert helper.stdout is not None
    ready = helper.stdout.read(1)
    try:
        reply, _ = helper.communicate(request, timeout=time_limit)
    except subprocess.TimeoutExpired:
        raise EngineInterrupted("interrupted") from None
    if not ready or not reply:
        raise EngineFailure(f"the regular expression helper ended with exit code {helper.returncode}")
    answer = json.loads(reply)
    if answer["outcome"] == "interrupted":
        raise EngineInterrupted("interrupted")
    if answer["outcome"] == "failed":
        raise EngineFailure(answer["message"])
    spans: Spans | None = answer["spans"]
    return spans


def main() -> None:
    """Serve one request: a ready byte, then one JSON object in, one out."""
    engine = Engine()
    sys.stdout.write("\n")
    sys.stdout.flush()
    request = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(_serve(engine, request)))


def _serve(engine: Engine, request: dict[str, object]) -> dict[str, object]:
    source, flags, text = str(request["source"]), str(request["flags"]), str(request["text"])
    try:
        spans = engine.search(source, flags, text, float(str(request["limit"])))
    except EngineInterrupted:
        return {"outcome": "interrupted"}
    except EngineFailure as error:
        return {"outcome": "failed", "message": str(error)}
    return {"outcome": "done", "spans": spans}
