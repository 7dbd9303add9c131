"""Base classes for the config mappings of plugins, and the wording of their problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic.alias_generators import to_camel

from vally.errors import ConfigInvalid
from vally.guard import guarded, reason_of
from vally.model.problems import config_problems, key_suggestions

if TYPE_CHECKING:
    from vally.records import GraderSpec


class Config(BaseModel):
    """Config of a grader: keys as in YAML (snake_case), unknown keys refused, no coercion, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class CamelConfig(Config):
    """Config of every other kind of plugin: keys in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


def config_model_problem(model: object) -> str | None:
    """Return why a class cannot check configs; None for subclasses of `Config` and what has its properties."""
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return "is not a pydantic model"
    if issubclass(model, Config):
        return None
    wanted = {"extra": "forbid", "strict": True, "frozen": True}
    missing = [f"{key}={value!r}" for key, value in wanted.items() if model.model_config.get(key) != value]
    return f"must subclass vally.Config or set {', '.join(missing)}" if missing else None


def parse_config(
    name: str,
    model: type[BaseModel] | None,
    mapping: Mapping[str, object] | None,
    *,
    lenient: bool = False,
    spec_dir: Path | None = None,
) -> Any:
    """Validate the config mapping of the plugin `name`; None means an empty one.

    Returns the model instance, or `{}` when there is no model, whose mapping must be empty. With `lenient` an invalid
    `Pattern` passes. `spec_dir` is the directory of the eval, when it is known: files that a config names are
    looked for there. Raises `ConfigInvalid` with every problem.
    """
    values = {} if mapping is None else mapping
    if model is None:
        if values:
            raise ConfigInvalid(name, [f"unknown key '{key}'" for key in values])
        return {}
    try:
        return _validated(model, values, {"lenient": lenient, "spec_dir": spec_dir})
    except ValidationError as error:
        raise ConfigInvalid(name, config_problems(error, values), key_suggestions(error, values, model)) from None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a validator of a plugin may raise anything
        raise ConfigInvalid(name, [f"it cannot be checked: {reason_of(error)}"]) from error


def _fits_evidence(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str) and set(value) <= EVIDENCE


EVIDENCE = frozenset({"diff", "turn-diff", "golden_patch", "repo"})
_FACTS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "evidence": (_fits_evidence, f"a set of {', '.join(map(repr, sorted(EVIDENCE)))}"),
    "requires_workspace": (lambda value: isinstance(value, bool), "True or False"),
    "oracle": (lambda value: value in ("trajectory", "state", "either", "none"), "trajectory, state, either or none"),
}


def config_fact_problem(config: object) -> str | None:
    """What the config of a grader says of itself in a way that cannot be understood; None when all can."""
    for name, (fits, wanted) in _FACTS.items():
        if not callable(getattr(type(config), name, None)):
            continue
        value, error = guarded(getattr(config, name))
        if error is None:
            understood, error = guarded(fits, value)
            if understood:
                continue
        reason = f"raised {reason_of(error)}" if error is not None else f"must return {wanted}, not {value!r:.80}"
        return f"{name}() of its config {reason}"
    return None


def config_evidence(config: object) -> frozenset[str]:
    """What an entry with this validated config reads beside the trajectory, as far as its model says it.

    A subset of `diff`, `turn-diff`, `golden_patch`, `repo`.
    """
    evidence = getattr(config, "evidence", None)
    try:
        return frozenset(evidence()) if callable(evidence) else frozenset()
    except Exception:  # a plugin may raise anything; what it reads stays unknown
        return frozenset()


def needs_workspace(record: GraderSpec, config: object) -> bool:
    """Whether an entry reads files or starts processes: a method `requires_workspace()` of its config has the say."""
    method = getattr(config, "requires_workspace", None)
    try:
        return bool(method()) if callable(method) else record.requires_workspace
    except Exception:  # a plugin may raise anything; then the record says it
        return record.requires_workspace


def supports_view(record: GraderSpec, field: Literal["turn", "scope"], config: object) -> bool:
    """Whether an entry with this validated config may have `turn`, or `scope`."""
    if record.requires_judge and not config_evidence(config).isdisjoint({"diff", "turn-diff"}):
        # A judge that reads the diff of the whole run cannot be narrowed.
        return False
    declared = record.turn if field == "turn" else record.scope
    return not needs_workspace(record, config) if declared is None else declared


def _validated(model: type[BaseModel], values: Mapping[str, object], context: dict[str, Any]) -> BaseModel:
    # Read as JSON, a list fits a tuple and a text fits a path or an enum although the models are strict.
    try:
        text = _ENCODER.encode(values).encode()
    except (TypeError, UnicodeEncodeError):
        return model.model_validate(values, context=context, by_alias=True, by_name=False)
    return model.model_validate_json(text, context=context, by_alias=True, by_name=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False)


def _check_pattern(value: str, info: ValidationInfo) -> str:
    from vally.text.regex import InvalidRegex, compile_regex

    lenient = isinstance(info.context, dict) and info.context.get("lenient")
    if not lenient:
        try:
            compile_regex(value)
        except InvalidRegex as error:
            raise ValueError(str(error)) from None
    return value


Pattern = Annotated[str, AfterValidator(_check_pattern)]
"""A regular expression in a grader config; a bad one is a diagnostic when the spec is loaded.

While grading, configs are parsed with the context `{"lenient": True}`, so that an invalid pattern that slipped past
validation reaches the grader and becomes a verdict there.
"""
