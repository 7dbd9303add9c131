"""Why a trial could not be prepared: one line, a code, and what went wrong in which phase.

| code | when |
|---|---|
| `environment-setup` | the file system refused something |
| `environment-file-not-found`, `environment-file-escape`, `environment-file-conflict` | `files` and skills |
| `skill-name-collision` | two skills would lie at the same place |
| `setup-command-failed`, `setup-command-timeout` | `commands` |
| `git-not-found`, `git-source-not-found`, `git-ref-not-found`, `git-clone-failed`, `git-setup-failed` | `git` |
| `workspace-not-empty`, `workspace-not-found` | `--workspace`, `--in-place` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally import VallyError


class SetupError(VallyError):
    """A workspace or a grading environment could not be prepared."""

    def __init__(
        self, message: str, *, code: str, retryable: bool = False, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retryable = retryable
        self.details = dict(details or {})


def from_os_error(error: OSError, doing: str) -> SetupError:
    """Word what the file system said while `doing` something, e.g. `copy the fixture`."""
    about = f": '{error.filename}'" if error.filename else ""
    return SetupError(f"cannot {doing}: {error.strerror or error}{about}", code="environment-setup")
