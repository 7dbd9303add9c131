"""A conversation whose session is scripted: orders of events that the real runtime shows now and then only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from judge_questions import request

from vally import EndpointError, ProviderConfig
from vally_judge_copilot.access import Access
from vally_judge_copilot.conversation import SessionConversation

Hear = Callable[[Mapping[str, Any]], None]


class RefusedSession:
    """The endpoint refuses the call; asked to stop, the session says that it is idle before it answers."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear

    async def send(self, prompt: str, *, response_schema: Any) -> None:
        self._hear({"type": "assistant.turn_start", "data": {}})
        self._hear({"type": "model.call_failure", "data": {"statusCode": 401, "errorMessage": "wrong key"}})

    async def abort(self) -> None:
        self._hear({"type": "session.idle", "data": {"aborted": True}})
        await anyio.sleep(0.05)


class Client:
    async def create_session(self, *, on_unreadable: Hear, **_: Any) -> RefusedSession:
        return RefusedSession(on_unreadable)

    async def wait_failed(self) -> None:
        await anyio.sleep_forever()


def test_a_refusal_is_one_although_the_session_is_idle_first(tmp_path: Path) -> None:
    access = Access(ProviderConfig(type="openai", base_url="http://models.example/v1", api_key="the-key"), {})
    client: Any = Client()

    async def ask() -> None:
        await SessionConversation(request("x"), client, access, tmp_path).ask()

    with pytest.raises(EndpointError, match="HTTP 401: wrong key") as caught:
        anyio.run(ask)
    assert caught.value.status == 401
