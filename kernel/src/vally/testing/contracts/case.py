"""One named case of a contract."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Case:
    """Calling it runs the check, which raises `AssertionError` when the contract is broken.

    The check may be async. pytest shows the name as the id of the parameter.
    """

    def __init__(self, name: str, check: Callable[..., Any], *args: Any) -> None:
        self.__name__ = name
        self._check = check
        self._args = args

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, directory: Path | None = None) -> None:
        """Run the check in an empty directory, such as pytest's `tmp_path`; without one a temporary one is made."""
        if directory is None:
            with tempfile.TemporaryDirectory(prefix="vally-contract-") as made:
                self(Path(made).resolve())
        elif inspect.iscoroutinefunction(self._check):
            import anyio

            async def run() -> None:
                await self._check(*self._args, directory)

            anyio.run(run)
        else:
            self._check(*self._args, directory)
