"""Fixtures of the tests of judges behind an endpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from endpoints import FixedEndpoint
from judge_questions import KEY

from vally.testing import MockLlm


@pytest.fixture
def endpoint() -> Iterator[FixedEndpoint]:
    """An endpoint with fixed answers, for what the mock model server does not say."""
    with FixedEndpoint() as server:
        yield server


@pytest.fixture
def server() -> Iterator[MockLlm]:
    """The mock model server, which wants the key."""
    with MockLlm(api_key=KEY) as running:
        yield running
