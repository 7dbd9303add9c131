"""Profiles: presets for agents that are known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vally_executor_command.profiles.claude import Claude
from vally_executor_command.profiles.codex import Codex
from vally_executor_command.profiles.copilot import Copilot
from vally_executor_command.profiles.gemini import Gemini
from vally_executor_command.profiles.opencode import Opencode
from vally_executor_command.profiles.profile import Additions, Profile, Trial

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (Copilot(), Claude(), Codex(), Gemini(), Opencode())}
)

__all__ = ["PROFILES", "Additions", "Profile", "Trial"]
