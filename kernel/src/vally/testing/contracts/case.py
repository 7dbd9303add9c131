"""One named case of a contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Case:
    """Calling it with an empty directory runs the check, which raises `AssertionError` when the contract is broken.

    The check may be async. pytest shows the name as the id of the parameter.
    """

    def __init__(self, name: str, check: Callable[..., Any], *args: Any) -> None:
        self.__name__ = name
        self._check = check
        self._args = args

    def __repr__(self) -> str:
        return f"Case({self.__name__!r})"

    def __call__(self, directory: Path) -> None:
        """Run the check; `directory` is its scratch space, e.g. pytest's `tmp_path`."""
        if inspect.iscoroutinefunction(self._check):
            import anyio

            async def run() -> None:
                await self._check(*self._args, directory)

            anyio.run(run)
        else:
            self._check(*self._args, directory)
