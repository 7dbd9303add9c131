"""Parameters of pages: those of the API, as forms send them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from vally_command_results.server.answers import problems_of
from vally_command_results.server.params import Parameters

P = TypeVar("P", bound=Parameters)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMES = frozenset({"eval_name", "model", "variant", "stimulus", "tag", "grader", "tool", "group"})


def read(model: type[P], request: Request) -> P:
    """Validate the query of a request; raises `QueryError`.

    Empty fields of forms count as not given. Names are taken as they are, since they may hold commas.
    """
    given: dict[str, list[str]] = {}
    for key, value in request.query_params.multi_items():
        if value != "":
            given.setdefault(key, []).append(_whole_day(key, value))
    values = {key: found if len(found) > 1 else found[0] for key, found in given.items()}
    try:
        parameters = model.model_validate(values)
    except ValidationError as error:
        raise problems_of([{**item, "loc": ("query", *item["loc"])} for item in error.errors()]) from error
    exact: dict[str, Any] = {
        name: tuple(given[field.alias or name])
        for name, field in model.model_fields.items()
        if name in _NAMES and (field.alias or name) in given
    }
    return parameters.model_copy(update=exact)


def _whole_day(key: str, value: str) -> str:
    if _DAY.fullmatch(value) and key in ("since", "until"):
        return f"{value}T00:00:00.000Z" if key == "since" else f"{value}T23:59:59.999Z"
    return value


def pairs_without(request: Request, *names: str) -> list[tuple[str, str]]:
    """The parameters of a request as they are, but for some; for links that change one thing."""
    left_out = {*names, "cursor"}
    return [(key, value) for key, value in request.query_params.multi_items() if value and key not in left_out]


def with_parameters(request: Request, **changed: Any) -> list[tuple[str, Any]]:
    """The parameters of a request with some set anew; None takes one away."""
    return [*pairs_without(request, *changed), *((key, value) for key, value in changed.items() if value is not None)]


def hidden(request: Request, shown: Iterable[str]) -> list[tuple[str, str]]:
    """Parameters that a form must send along because no field of it shows them."""
    return pairs_without(request, *shown)
