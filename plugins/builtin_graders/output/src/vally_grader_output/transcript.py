"""What the `transcript-*` keywords share: the messages of the agent and the verdict over them."""

from __future__ import annotations

from collections.abc import Callable

from vally import GraderResult, Trajectory


def messages(trajectory: Trajectory) -> list[str]:
    """The agent's messages in order, without blank ones."""
    contents = (event.data.get("content") for event in trajectory.events if event.type == "assistant_message")
    return [content for content in contents if isinstance(content, str) and content.strip()]


def grade_messages(
    texts: list[str], test: Callable[[str], bool], evidence: Callable[[bool], str], *, negate: bool, name: str
) -> GraderResult:
    """Test each message on its own; without any message both the keyword and its negation fail."""
    hit = next((index for index, text in enumerate(texts) if test(text)), None)
    metadata = {"messageCount": len(texts), "matchedMessage": hit}
    if not texts:
        return GraderResult.verdict(False, "No assistant messages in transcript", name=name, metadata=metadata)
    found = hit is not None
    return GraderResult.verdict(found != negate, evidence(found), name=name, metadata=metadata)
