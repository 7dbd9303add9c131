"""`skill-invocation`: which skills were activated, and which were not."""

from __future__ import annotations

from vally_grader_tool_calls.named_events import NamedEvents, NamesConfig


class SkillInvocationConfig(NamesConfig):
    """Names of skills; `*` in `disallowed` is any skill."""


class SkillInvocation(NamedEvents):
    """Counts activations."""

    keyword = "skill-invocation"
    event_type = "skill_activation"
    name_key = "name"
    noun = "skill"
    happened = "invoked"
    any_name = "*"
