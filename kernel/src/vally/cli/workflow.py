"""What CI services with workflow commands show of a command: annotations and the summary of a step."""

from __future__ import annotations

import os
from pathlib import Path

MAX_SUMMARY_BYTES = 900 * 1024
_CUT = "\n\nThe rest does not fit here.\n"


def workflow_command(command: str, text: str, **properties: str | int | None) -> str:
    """One line such as `::error file=a.yaml,line=3,title=x::text`; properties without a value are left out."""
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{command} {listed}::{_data(text)}" if listed else f"::{command}::{_data(text)}"


def _data(text: str) -> str:
    # What is no line end to the service ends a line for some of its viewers.
    for end in ("\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"):
        text = text.replace(end, " ")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def workflow_path(path: Path, workspace: str | None) -> str:
    """A file as annotations name it: relative to the checkout when it lies in it, else absolute."""
    if workspace:
        for file, root in ((path, Path(workspace)), (path.resolve(), Path(workspace).resolve())):
            if file.is_relative_to(root):
                return file.relative_to(root).as_posix()
    return path.as_posix()


def append_step_summary(path: str, text: str) -> str | None:
    """Append Markdown to the summary of a step; returns what went wrong, or None.

    The file holds at most 900 KiB afterwards, whoever wrote before; what does not fit is left out, and a line says so.
    """
    data = text.encode("utf-8", "replace")
    try:
        # Without waiting: a pipe that nobody reads would hold the command up.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            room = MAX_SUMMARY_BYTES - os.fstat(file.fileno()).st_size
            file.write(_fitted(data, room))
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _fitted(data: bytes, room: int) -> bytes:
    if len(data) <= room:
        return data
    kept = data[: max(0, room - len(_CUT))]
    return kept[: kept.rfind(b"\n") + 1].rstrip(b"\n") + _CUT.encode()
