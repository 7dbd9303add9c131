"""What the agent may do: policies, and the answers to the runtime's requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Discriminator, Field, Tag

from vally import CamelConfig, Pattern, RegexError, RegexTimeout, compile_regex

Kind = Literal[
    "shell",
    "read",
    "write",
    "url",
    "mcp",
    "custom-tool",
    "memory",
    "hook",
    "workflow",
    "extension-management",
    "extension-permission-access",
    "extension-env-access",
]
Decision = Literal["allow", "deny"]
PolicyName = Literal["allow-all", "workspace", "deny-all"]
DENIED = "This is not allowed here."
_PATHS = {"read": "path", "write": "fileName"}
_SUBJECTS = {**_PATHS, "shell": "fullCommandText", "url": "url", "memory": "fact", "workflow": "name"}


class PermissionRule(CamelConfig):
    """Decides requests of one kind, those that `match` fits: a command, path, URL or tool name."""

    kind: Kind
    match: Pattern | None = None
    decision: Decision
    feedback: str | None = None


class PermissionRules(CamelConfig):
    """The first rule that fits decides, else `default`."""

    default: Decision
    rules: list[PermissionRule] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request got; `feedback` is told to the agent."""

    allowed: bool
    feedback: str | None = None


def _form(value: object) -> str:
    return "PermissionRules" if isinstance(value, (Mapping, PermissionRules)) else "PolicyName"


# Told apart by their form, so that a mistake in a rule is not taken for a name that nobody knows.
Policy = Annotated[
    Annotated[PolicyName, Tag("PolicyName")] | Annotated[PermissionRules, Tag("PermissionRules")],
    Discriminator(_form),
]


@dataclass(frozen=True, slots=True)
class Permissions:
    """Answers the requests of one session.

    `work_dir` is what relative paths are relative to, `roots` are the directories that the policy `workspace` opens.
    """

    policy: Policy
    work_dir: Path
    roots: Sequence[Path] = field(default_factory=tuple)

    def decide(self, request: Mapping[str, Any]) -> Answer:
        """Answer a request in the runtime's own form. Blocks while a pattern is matched."""
        if isinstance(self.policy, PermissionRules):
            return self._by_rules(self.policy, request)
        if self.policy == "workspace":
            return self._by_place(request)
        return Answer(self.policy == "allow-all")

    def _by_rules(self, policy: PermissionRules, request: Mapping[str, Any]) -> Answer:
        kind, subject = request.get("kind"), subject_of(request)
        for rule in policy.rules:
            if rule.kind == kind and _fits(rule, subject):
                return Answer(rule.decision == "allow", rule.feedback)
        return Answer(policy.default == "allow")

    def _by_place(self, request: Mapping[str, Any]) -> Answer:
        kind = request.get("kind")
        if kind == "url":
            return Answer(False, "Addresses of the network are not allowed here.")
        if kind in _PATHS and not self._is_inside(subject_of(request)):
            return Answer(False, "Only paths inside the workspace are allowed here.")
        return Answer(True)

    def _is_inside(self, path: str) -> bool:
        return is_inside(path, (self.work_dir, *self.roots))


def is_inside(path: str, roots: Sequence[Path]) -> bool:
    """Whether a path, which may be relative to the first of the roots, lies in one of them, links followed."""
    try:
        real = Path(os.path.realpath(roots[0] / path))
    except (OSError, ValueError):
        return False
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots)


def subject_of(request: Mapping[str, Any]) -> str:
    """The command, path, URL or tool name that a request is about; tools of MCP servers as the agent names them."""
    kind = request.get("kind")
    if kind == "mcp":
        return f"{request.get('serverName', '')}-{request.get('toolName', '')}"
    value = request.get(_SUBJECTS.get(str(kind), "toolName"))
    return value if isinstance(value, str) else ""


def permission_handler(permissions: Permissions) -> Callable[[Any, Any], Any]:
    """The handler that the SDK calls for each request; it never waits for a person."""
    if permissions.policy == "allow-all":
        return answering(None)
    return answering(permissions.decide)


def answering(decide: Callable[[Mapping[str, Any]], Answer] | None) -> Callable[[Any, Any], Any]:
    """The handler that asks `decide`, in a thread, about each request in the runtime's form; without it allows all."""
    from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject

    async def answer(request: Any, _: Any) -> Any:
        asked = request.to_dict()
        decided = Answer(True) if decide is None else await anyio.to_thread.run_sync(decide, asked)
        # Without a word of feedback the runtime takes a rejection for the wish to end the turn.
        return (
            PermissionDecisionApproveOnce() if decided.allowed else PermissionDecisionReject(decided.feedback or DENIED)
        )

    return answer


def _fits(rule: PermissionRule, text: str) -> bool:
    if rule.match is None:
        return True
    try:
        return compile_regex(rule.match).search(text) is not None
    except (RegexTimeout, RegexError):
        # A pattern that cannot be decided must open nothing.
        return rule.decision == "deny"
