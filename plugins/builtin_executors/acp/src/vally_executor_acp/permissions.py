"""What the agent may do: the policy, and the answer to each of its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from vally import CamelConfig, Pattern, RegexError, RegexTimeout, compile_regex

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
Decision = Literal["allow", "deny"]
ALLOW = ("allow_once", "allow_always")
REJECT = ("reject_once", "reject_always")


class PermissionRule(CamelConfig):
    """Decides requests of one kind of tool, those whose title fits `match`."""

    kind: Kind
    match: Pattern | None = None
    decision: Decision

    def fits(self, kind: str, title: str) -> bool:
        """Whether the rule decides a request; a pattern that cannot be matched fits where it denies."""
        if kind != self.kind:
            return False
        if self.match is None:
            return True
        try:
            return compile_regex(self.match).search(title) is not None
        except (RegexError, RegexTimeout):
            return self.decision == "deny"


class PermissionRules(CamelConfig):
    """The first rule that fits decides, else `default`."""

    default: Decision
    rules: list[PermissionRule] = Field(default_factory=list)


Policy = Literal["allow-all", "deny-all"] | PermissionRules


def is_allowed(policy: Policy, kind: str, title: str) -> bool:
    """Whether the policy lets a tool call happen. Blocks while a pattern is matched."""
    if isinstance(policy, PermissionRules):
        rule = next((rule for rule in policy.rules if rule.fits(kind, title)), None)
        return (policy.default if rule is None else rule.decision) == "allow"
    return policy == "allow-all"


def outcome(options: Sequence[Mapping[str, Any]], *, allowed: bool) -> dict[str, Any]:
    """The answer in the protocol's form: the narrowest of the agent's options that says so, else a cancellation."""
    for kind in ALLOW if allowed else REJECT:
        for option in options:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return cancelled()


def cancelled() -> dict[str, Any]:
    """The answer while the prompt is being cancelled."""
    return {"outcome": {"outcome": "cancelled"}}
