"""Connecting the bridge to a cluster, which may let one wait, or not let one in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from vally import BackendError, RunContext
from vally_backend_ray.addresses import GIVE_TOKEN, NOT_LET_IN, not_accepted, shows_token
from vally_backend_ray.bridge_process import BridgeProcess
from vally_backend_ray.codes import UNAVAILABLE
from vally_backend_ray.messages import ClusterSettings

CONNECT_S = 120.0
NOTICE_S = 1.5
"""After which it is told that a cluster lets one wait."""


async def connected(process: BridgeProcess, settings: ClusterSettings, context: RunContext) -> Mapping[str, str]:
    """Have the bridge start a cluster or connect to one; returns what records say of it. Raises `BackendError`."""
    address = settings.address
    connecting = asyncio.ensure_future(process.link.call("connect", settings))
    refused = asyncio.ensure_future(process.unauthenticated.wait())
    notice = None
    if address is not None:
        notice = asyncio.get_running_loop().call_later(NOTICE_S, _tell_of_waiting, address, context)
    try:
        await asyncio.wait([connecting, refused], timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            facts: Mapping[str, str] = connecting.result()
            return facts
        if address is not None and refused.done():
            raise not_accepted(address, context.process_env)
        raise _no_answer(address, context)
    finally:
        connecting.cancel()
        refused.cancel()
        if notice is not None:
            notice.cancel()


def _no_answer(address: str | None, context: RunContext) -> BackendError:
    where = "the cluster did not start" if address is None else f"'{address}' did not answer"
    hints = () if address is None or shows_token(context.process_env) else (NOT_LET_IN,)
    return BackendError(f"{where} within {CONNECT_S:g} s", code=UNAVAILABLE, hints=hints)


def _tell_of_waiting(address: str, context: RunContext) -> None:
    without = "" if shows_token(context.process_env) else f"; if it asks for a token: {GIVE_TOKEN}"
    context.on_warning(f"still connecting to the Ray cluster at '{address}'{without}")
