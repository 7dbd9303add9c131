"""Which backend runs the trials, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.errors import ConfigInvalid, UsageError

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.records import BackendSpec


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend and its settings as given; a key that was given twice has a list."""

    record: BackendSpec
    args: Mapping[str, str | list[str]]


def choose_backend(
    context: CliContext, host: PluginHost, project: Project, named: str | None, words: Sequence[tuple[str, str]]
) -> BackendChoice:
    """The backend of `--backend`, else of the project, else the default; raises `UsageError` for wrong settings."""
    from vally.model.evalspec import DEFAULT_BACKEND
    from vally.records import BackendSpec

    name = named or project.backend
    if words and name is None:
        raise UsageError("--backend-args needs --backend or a default backend in .vally.yaml")
    record = host.resolve_one("backend", name or DEFAULT_BACKEND, bases=(context.cwd,))
    assert isinstance(record, BackendSpec)
    args = {**(project.backend_args if named is None else {}), **_merged(words)}
    _check(host, record, args)
    return BackendChoice(record, args)


def _merged(words: Sequence[tuple[str, str]]) -> dict[str, str | list[str]]:
    given: dict[str, str | list[str]] = {}
    for key, value in words:
        earlier = given.get(key)
        given[key] = value if earlier is None else [*([earlier] if isinstance(earlier, str) else earlier), value]
    return given


def _check(host: PluginHost, record: BackendSpec, args: Mapping[str, str | list[str]]) -> None:
    from vally.text.suggest import did_you_mean

    try:
        host.parse_config(record, args)
    except ConfigInvalid as error:
        model = host.config_model(record)
        fields = model.model_fields if model is not None else {}
        known = sorted(field.alias or name for name, field in fields.items())
        unknown = next((word for word in args if word not in known), None)
        hint = (did_you_mean(unknown, known) if unknown else None) or f"arguments: {', '.join(known) or 'none'}"
        raise UsageError(
            f"backend '{record.name}': {error.problems[0]}", where="--backend-args", hints=[hint]
        ) from None
