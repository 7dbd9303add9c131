"""Dialects: how the output of an agent becomes events."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vally_executor_command.dialects.claude import ClaudeLines
from vally_executor_command.dialects.codex import CodexLines
from vally_executor_command.dialects.copilot import CopilotLines
from vally_executor_command.dialects.gemini import GeminiLines
from vally_executor_command.dialects.opencode import OpencodeLines
from vally_executor_command.dialects.parsed import ParsedTurn, Parser, TurnOutput
from vally_executor_command.dialects.text import parse_text

DIALECTS: Mapping[str, Parser] = MappingProxyType(
    {
        "text": parse_text,
        "copilot": CopilotLines.parse,
        "claude": ClaudeLines.parse,
        "codex": CodexLines.parse,
        "gemini": GeminiLines.parse,
        "opencode": OpencodeLines.parse,
    }
)

__all__ = ["DIALECTS", "ParsedTurn", "Parser", "TurnOutput"]
