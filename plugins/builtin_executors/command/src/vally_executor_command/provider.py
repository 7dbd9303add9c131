"""The endpoint of an agent's model."""

from __future__ import annotations

from typing import Literal

from vally import ProviderSettings


class CommandProvider(ProviderSettings):
    """The provider shape with one more wire family, that of Gemini; its `baseUrl` is the address without a version."""

    # Wider than in the shape: agents speak more than the executors that ask models themselves.
    type: Literal["openai", "azure", "anthropic", "gemini"]  # type: ignore[assignment]
