"""Parameters that not every endpoint accepts, and the memory of which ones were refused."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from vally.run.endpoint_error import EndpointError

T = TypeVar("T")
REFUSING_STATUSES = frozenset({400, 404, 415, 422, 501})


class OptionalParameters:
    """Remembers for each model what the endpoint refused, so that nothing is refused twice.

    `words` maps the name of each parameter to the words by which an endpoint may speak of it. Those in
    `wanted_by_users` were asked for by somebody, so leaving them out is a warning in `log`.
    """

    def __init__(
        self,
        words: Mapping[str, Sequence[str]],
        *,
        wanted_by_users: Sequence[str] = (),
        log: logging.Logger | None = None,
    ) -> None:
        self._patterns = {
            name: re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, spoken))})(?![\w-])", re.IGNORECASE)
            for name, spoken in words.items()
        }
        self._wanted = frozenset(wanted_by_users)
        self._refused: dict[str, set[str]] = {}
        self._log = log or logging.getLogger("vally.judge")

    async def send(
        self, model: str, optional: Mapping[str, Any], request: Callable[[Mapping[str, Any]], Awaitable[T]]
    ) -> T:
        """Make a request with the parameters that are accepted; each refusal of one makes another request.

        Parameters without a value are left out. Raises the `EndpointError` of a request that fails otherwise.
        """
        while True:
            refused = self._refused.get(model, ())
            sent = {name: value for name, value in optional.items() if value is not None and name not in refused}
            try:
                return await request(sent)
            except EndpointError as error:
                if not self._drop(model, sent, error):
                    raise

    def _drop(self, model: str, sent: Mapping[str, Any], error: EndpointError) -> bool:
        """Remember the parameter that an error speaks of; False when it speaks of none that was sent."""
        if error.status not in REFUSING_STATUSES:
            return False
        texts = (_named_parameter(error.body), error.body)
        name = next((name for text in texts for name in sent if self._patterns[name].search(text)), None)
        if name is None:
            return False
        self._refused.setdefault(model, set()).add(name)
        level = logging.WARNING if name in self._wanted else logging.INFO
        self._log.log(level, "model '%s' does not accept %s; it is left out", model, name)
        return True


def _named_parameter(body: str) -> str:
    """What an endpoint says in `error.param`; empty when it says nothing there."""
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return str(error.get("param") or "") if isinstance(error, dict) else ""
