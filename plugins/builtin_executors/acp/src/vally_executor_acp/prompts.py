"""Prompts in the protocol's form."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from vally import Attachment, ExecutorError
from vally_executor_acp.agent import Agent


def blocks(prompt: str, attachments: Sequence[Attachment], agent: Agent) -> list[dict[str, Any]]:
    """The text and its files; blocks while files are read. Raises `ExecutorError` for what the agent cannot take."""
    return [{"type": "text", "text": prompt}, *(_block(item, agent) for item in attachments)]


def _block(attachment: Attachment, agent: Agent) -> dict[str, Any]:
    kind = attachment.mime_type.partition("/")[0]
    if kind == "image" and agent.can("promptCapabilities", "image"):
        return {"type": "image", "mimeType": attachment.mime_type, "data": _encoded(attachment)}
    if not agent.can("promptCapabilities", "embeddedContext"):
        raise ExecutorError(
            f"executor 'acp' does not support attachments with this agent ('{attachment.name}')",
            code="unsupported-option",
        )
    resource: dict[str, Any] = {"uri": attachment.path.as_uri(), "mimeType": attachment.mime_type}
    content = attachment.path.read_bytes()
    try:
        resource["text"] = content.decode("utf-8")
    except UnicodeDecodeError:
        resource["blob"] = base64.b64encode(content).decode("ascii")
    return {"type": "resource", "resource": resource}


def _encoded(attachment: Attachment) -> str:
    return base64.b64encode(attachment.path.read_bytes()).decode("ascii")
