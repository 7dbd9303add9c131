"""Telling from an endpoint's refusal that the conversation no longer fits into the model."""

from __future__ import annotations

import re

from vally import EndpointError

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (?:size|window|length) .{0,40}exceed"
    r"|exceeds? .{0,40}context (?:size|window|length)",
    re.IGNORECASE,
)


def is_too_long(error: EndpointError) -> bool:
    """Whether a request was refused for its length."""
    return error.status in (400, 413) and _TOO_LONG.search(error.body) is not None
