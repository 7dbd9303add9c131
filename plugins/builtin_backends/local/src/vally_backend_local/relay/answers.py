"""What the relay itself answers: errors, in a form that the libraries of all known dialects can show."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer instead of that of the provider, after which the connection is closed."""

    status: int
    message: str

    def body(self) -> bytes:
        """One JSON object with `error.message`, as chat completions, responses, messages and Gemini have it."""
        kind = "authentication_error" if self.status == 401 else "api_error"
        error = {"type": kind, "code": self.status, "message": self.message, "status": _STATUS.get(self.status)}
        told = {name: value for name, value in error.items() if value is not None}
        return json.dumps({"type": "error", "error": told}).encode()


_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 502: "UNAVAILABLE"}
NO_TOKEN = Refusal(401, "the model relay of this trial was asked without the key that the agent was given")
OUTSIDE = Refusal(404, "the model relay passes on requests below the path of the model endpoint only")
METHOD = Refusal(405, "the model relay does not pass this method on")
WEBSOCKET = Refusal(426, "the model relay passes on plain requests, no websockets")
AMBIGUOUS = Refusal(400, "the length of the request is told in two ways")
SLOW = Refusal(408, "the request did not arrive in time")
