"""How some agents tell notices and failures, for which the protocol has no words."""

from __future__ import annotations

from dataclasses import dataclass

from vally_executor_acp.agent import Params, mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """What an agent does beside the protocol.

    `cumulative_usage`: counts of tokens are those of the session so far. `notice_prefix`: notices come as messages
    that start so. `failure_prefix`: the last message of a prompt that starts so, and comes in one piece, is a failure.
    `notices_without_id`: messages without an id are notices. `tools_named_by_id`: the id of a call starts with the
    name of its tool.
    """

    cumulative_usage: bool = False
    notice_prefix: str | None = None
    failure_prefix: str | None = None
    notices_without_id: bool = False
    tools_named_by_id: bool = False

    def is_notice(self, update: Params, text: str) -> bool:
        """Whether a message is not one of the model."""
        if mapping(mapping(update.get("_meta")).get("claudeCode")).get("kind") == "informational":
            return True
        if self.notices_without_id and not update.get("messageId"):
            return True
        return self.notice_prefix is not None and text.startswith(self.notice_prefix)

    def may_be_failure(self, text: str) -> bool:
        """Whether a message is a failure, should it be the last one."""
        return self.failure_prefix is not None and text.startswith(self.failure_prefix)


def quirks_of(agent_name: str) -> Quirks:
    """By the name that an agent gives itself."""
    name = agent_name.casefold()
    if name == "copilot":
        return Quirks(cumulative_usage=True, notice_prefix="Info: ", failure_prefix="Error: ")
    if name.endswith("codex-acp"):
        return Quirks(notices_without_id=True)
    if name == "gemini-cli":
        return Quirks(tools_named_by_id=True)
    return Quirks()


def has_failed(update: Params) -> bool:
    """Whether an agent says of its own accord that the prompt failed."""
    status = mapping(mapping(mapping(update.get("_meta")).get("codex")).get("threadStatus"))
    return status.get("type") == "systemError"
