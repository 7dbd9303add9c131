"""The event loop of a run."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor


class _Leaving(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def leave_threads_behind() -> None:
    """Let the current loop end although plugins hang in threads of its default executor, which it would wait for."""
    asyncio.get_running_loop().set_default_executor(_Leaving())
