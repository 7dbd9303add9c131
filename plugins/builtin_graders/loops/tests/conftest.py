"""Events of the tests of this plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import Event
from vally.testing import event

MakeCalls = Callable[..., list[Event]]


@pytest.fixture(scope="session")
def calls() -> MakeCalls:
    """Make events from tool names, or from (tool, arguments) or (tool, arguments, result)."""

    def make(*written: Any, **data: Any) -> list[Event]:
        events = []
        for number, item in enumerate(written):
            tool, *rest = (item,) if isinstance(item, str) else item
            ident = {"tool_call_id": f"{data.get('agent_id', '')}-{data.get('turn', '')}-{number}", **data}
            arguments = {"arguments": rest[0]} if rest else {}
            events.append(event("tool_call", tool_name=tool, **arguments, **ident))
            if len(rest) > 1:
                events.append(event("tool_result", tool_name=tool, success=True, result=rest[1], **ident))
        return events

    return make
