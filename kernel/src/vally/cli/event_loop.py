"""The event loop of a run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


class _Leaving(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def leave_threads_behind() -> None:
    """Let the current loop end although plugins hang in threads of its default executor, which it would wait for."""
    asyncio.get_running_loop().set_default_executor(_Leaving())


@contextmanager
def spared_collector() -> Iterator[None]:
    """Leave what exists so far, which is there to stay, out of the looks for garbage while the body runs."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
