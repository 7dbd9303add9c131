"""A model server without a model: the prompt itself says what it answers."""

from __future__ import annotations

from vally.testing.mock_llm.log import MockRequest
from vally.testing.mock_llm.server import MockLlm

__all__ = ["MockLlm", "MockRequest"]
