"""An endpoint with fixed answers, for what the mock model server does not say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from endpoints import FixedEndpoint


@pytest.fixture
def endpoint() -> Iterator[FixedEndpoint]:
    with FixedEndpoint() as server:
        yield server
