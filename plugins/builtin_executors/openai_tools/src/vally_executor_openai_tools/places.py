"""Where the file tools may go: the workspace, the assets, and the skills on offer."""

from __future__ import annotations

import os
from pathlib import Path

from vally import ExecutorOptions
from vally_executor_openai_tools.outcome import ToolError

OUTSIDE = "path is outside the workspace"


class Places:
    """Resolves the paths of tool calls; symbolic links are followed first and then judged."""

    def __init__(self, options: ExecutorOptions) -> None:
        self.work_dir = options.work_dir
        given = [options.work_dir, *(skill.path.parent for skill in options.skills)]
        if options.assets_dir is not None:
            given.append(options.assets_dir)
        self._roots = [Path(os.path.realpath(path)) for path in given]

    def resolve(self, text: str) -> Path:
        """The real path that a call means; raises `ToolError` outside of all places."""
        try:
            path = Path(os.path.realpath(self.work_dir / text))
        except (OSError, ValueError):
            # A name with a NUL, or with what no file name can hold.
            raise ToolError(f"'{text}' is not a path", "invalid-path") from None
        if not any(path.is_relative_to(root) for root in self._roots):
            raise ToolError(OUTSIDE, "outside-workspace")
        return path

    def contains(self, path: Path) -> bool:
        """Whether a path, its links followed, lies in one of the places."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(root) for root in self._roots)

    def shown(self, path: Path) -> str:
        """A path relative to the workspace where it can be."""
        real = Path(os.path.realpath(self.work_dir))
        return path.relative_to(real).as_posix() if path.is_relative_to(real) else path.as_posix()
