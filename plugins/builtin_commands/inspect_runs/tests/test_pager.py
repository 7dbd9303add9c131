"""Signals that come while the pager starts."""

from __future__ import annotations

import io
import signal
import sys
import threading

import pytest

from vally_command_inspect_runs.pager import paged, signals_held


class Ended(BaseException):
    """What the program makes of a signal."""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_heard_when_the_body_is_done(name: str) -> None:
    number = getattr(signal, name, None)
    if number is None:
        pytest.skip("there is no such signal here")

    def end(*_: object) -> None:
        raise Ended

    done: list[str] = []

    def body() -> None:
        with signals_held():
            signal.raise_signal(number)
            done.append("body")

    before = signal.signal(number, end)
    try:
        with pytest.raises(Ended):
            body()
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
    assert done == ["body"]


def test_a_pager_that_starts_while_a_signal_comes_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Starting:
        """A pager, at whose start the program is told to end."""

        def __init__(self, *_: object, **__: object) -> None:
            self.stdin = io.BytesIO()
            signal.raise_signal(signal.SIGTERM)

        def poll(self) -> None:
            return None

        def terminate(self) -> None:
            ended.append("terminated")

        def wait(self) -> int:
            return 0

    def end(*_: object) -> None:
        raise Ended

    monkeypatch.setattr("subprocess.Popen", Starting)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Ended), paged({"PAGER": sys.executable}):
            ended.append("body")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == ["terminated"]


def test_other_threads_may_page_too() -> None:
    done: list[str] = []

    def page() -> None:
        with signals_held():
            done.append("body")

    thread = threading.Thread(target=page)
    thread.start()
    thread.join()
    assert done == ["body"]
