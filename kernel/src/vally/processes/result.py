"""What became of a process: its end, or why it could not start."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass

from vally.errors import VallyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A process that ended. `returncode` is None after a signal; `signal` is its name, e.g. `SIGSEGV`."""

    returncode: int | None
    signal: str | None
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    timed_out: bool
    duration_ms: int


class ProcessStartError(VallyError):
    """A process could not be started; `errno_name` is the symbol of the system's error, such as `ENOENT`."""

    def __init__(self, errno_name: str, message: str) -> None:
        super().__init__(message)
        self.errno_name = errno_name

    @classmethod
    def from_error(cls, error: OSError | ValueError, program: str) -> ProcessStartError:
        """Word what the system or the subprocess module said about starting `program`."""
        if not isinstance(error, OSError):
            return cls("EINVAL", f"cannot start '{program}': {error}")
        name = errno.errorcode.get(error.errno or 0, "EIO")
        # With a missing working directory the system names that directory, not the program.
        about = error.filename if error.filename is not None else program
        return cls(name, f"cannot start '{program}': {error.strerror or error} ('{about}')")


def completed(returncode: int, *, duration_ms: int) -> Completed:
    """Translate a return code of the subprocess module, negative after a signal; without output."""
    return Completed(
        returncode=None if returncode < 0 else returncode,
        signal=signal_name(-returncode) if returncode < 0 else None,
        stdout=b"",
        stderr=b"",
        stdout_truncated=False,
        stderr_truncated=False,
        timed_out=False,
        duration_ms=duration_ms,
    )


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGSEGV`; the number for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
