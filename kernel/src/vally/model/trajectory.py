"""Trajectories, events and metrics: the JSON shapes of the records chapter, snake_case in Python, camelCase on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from vally.errors import VallyError
from vally.model.jsonio import INTEGRAL_LIMIT, MAX_INTEGER, parse_timestamp, timestamp, without_surrogates

if TYPE_CHECKING:
    from pydantic import ModelWrapValidatorHandler


class RecordModel(BaseModel):
    """Base of everything that is written down: unknown keys are kept, names on disk are camelCase.

    Fields that are None are left out of a record, except those in `or_null`; those in `null_if_set` are written as
    null when they were given as None. Keys with lone surrogates are accepted and repaired.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True, alias_generator=to_camel)
    or_null: ClassVar[frozenset[str]] = frozenset()
    null_if_set: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="wrap")
    @classmethod
    def _replace_surrogates(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # Pydantic refuses keys that are not valid Unicode, but agents do produce them.
        try:
            return handler(value)
        except ValidationError as problem:
            if not any(item["type"] == "string_unicode" for item in problem.errors(include_url=False)):
                raise
        return handler(without_surrogates(value))


M = TypeVar("M", bound=RecordModel)
MALFORMED_TURN = -1
"""Turn of an entry of `turn_diffs` that was not readable."""


class Event(RecordModel):
    """One thing that happened; `turn` is the 0-based conversation turn, `data` depends on `type`."""

    type: str
    timestamp: str | None = None
    turn: int | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)


class Cost(RecordModel):
    """An amount in a unit of a provider."""

    provider: str
    unit: str
    amount: float


class ModelTokens(RecordModel):
    """Tokens of one model."""

    input_tokens: int = 0
    output_tokens: int = 0
    call_count: int = 0


class TokenUsage(RecordModel):
    """Sums over `token_usage` events; cache tokens are informative and never added to the total."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    call_count: int = 0
    by_model: dict[str, ModelTokens] = Field(default_factory=dict)
    cost: Cost | None = None
    costs: list[Cost] | None = None


class Metrics(RecordModel):
    """Counts over events; `wall_time_ms` is set by executors and importers, everything else is computed."""

    token_usage: TokenUsage | None = Field(default_factory=TokenUsage)
    tool_call_count: int | None = 0
    tool_call_breakdown: dict[str, int] | None = Field(default_factory=dict)
    simulated_tool_call_count: int | None = 0
    skill_activation_count: int | None = 0
    skill_activation_breakdown: dict[str, int] | None = Field(default_factory=dict)
    turn_count: int | None = 0
    error_count: int | None = 0
    wall_time_ms: int | None = None


class TurnDiff(RecordModel):
    """Diff of one conversation turn; `status` is `captured` or `failed`."""

    turn: int
    status: str | None = None
    diff: str | None = None
    diff_path: str | None = None
    error: str | None = None


class Trajectory(RecordModel):
    """What one agent did in one trial.

    `stimulus` is the effective stimulus with spec keys; `work_dir` the graded workspace. `workspace_patch` lives in
    memory only; on disk it is the file `workspace.patch`.
    """

    null_if_set = frozenset({"session_path"})

    id: str = ""
    stimulus: dict[str, Any] = Field(default_factory=dict)
    events: list[Event] = Field(default_factory=list)
    metrics: Metrics | None = None
    output: str = ""
    work_dir: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    end_reason: str | None = None
    artifact_dir: str | None = None
    artifact_dir_strict: bool | None = None
    assets_dir: str | None = None
    diff: str | None = None
    diff_path: str | None = None
    diff_error: str | None = None
    turn_diffs: list[TurnDiff] | None = None
    workspace_patch: str | None = Field(default=None, exclude=True)
    workspace_status: str | None = None
    session_path: str | None = None
    truncated: bool | None = None
    trajectory_path: str | None = None
    redactions: int | None = None
    imported_from: dict[str, Any] | None = None


class RecordError(VallyError):
    """A value is not the record it should be; `where` is a JSON Pointer."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer or '/'} {problem}", code="bad-record", where=pointer)


def dump_record(model: RecordModel) -> dict[str, Any]:
    """The record of a model: keys in table order, then unknown keys; absent ones left out. Nested data is shared."""
    record: dict[str, Any] = {}
    values = model.__dict__
    for name, key in _written_fields(type(model)):
        value = values[name]
        if value is None and not _is_null(model, name):
            continue
        record[key] = value if type(value) is str else _dumped(value)
    for key, value in (model.model_extra or {}).items():
        record[key] = _dumped(value)
    return record


@cache
def _written_fields(cls: type[RecordModel]) -> tuple[tuple[str, str], ...]:
    """Names of the fields of a model with their keys."""
    return tuple((name, field.alias or name) for name, field in cls.model_fields.items() if not field.exclude)


def _is_null(model: RecordModel, name: str) -> bool:
    return name in model.or_null or (name in model.null_if_set and name in model.model_fields_set)


def _dumped(value: Any) -> Any:
    if isinstance(value, RecordModel):
        return dump_record(value)
    if isinstance(value, list):
        return [_dumped(item) for item in value] if any(isinstance(item, RecordModel) for item in value) else value
    if isinstance(value, dict):
        if any(isinstance(item, RecordModel) for item in value.values()):
            return {key: _dumped(item) for key, item in value.items()}
        return value
    if type(value) is float and value.is_integer() and abs(value) < INTEGRAL_LIMIT:
        value = int(value)  # It is written as one, and so read as one.
    if type(value) is int:
        return max(-MAX_INTEGER, min(value, MAX_INTEGER))
    return value


def load_model(cls: type[M], value: object, pointer: str = "") -> M:
    """Read a record leniently: what does not fit its type counts as absent.

    Raises `RecordError` when something that is required is missing.
    """
    if not isinstance(value, Mapping):
        raise RecordError(pointer, "must be an object")
    try:
        return cls.model_validate(value)
    except ValidationError as error:
        fitting = without_surrogates(value)
        for location in _misfits(error):
            _drop(fitting, location)
    try:
        return cls.model_validate(fitting)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"/{part}" for part in first["loc"])
        raise RecordError(pointer + path, _problem(first["type"])) from None


def _misfits(error: ValidationError) -> list[tuple[int | str, ...]]:
    # Later items of a list first, so that dropping one does not move the others.
    found = {item["loc"] for item in error.errors(include_url=False) if item["type"] != "missing"}
    return sorted(found, key=lambda location: [(isinstance(part, str), part) for part in location], reverse=True)


def _drop(value: Any, location: tuple[int | str, ...]) -> None:
    for part in location[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    last = location[-1]
    if isinstance(value, dict):
        value.pop(last, None)
    elif isinstance(value, list) and isinstance(last, int) and last < len(value):
        del value[last]


def _problem(kind: str) -> str:
    return "is required" if kind == "missing" else "has the wrong type"


def load_trajectory(value: object, pointer: str = "") -> Trajectory:
    """Read a trajectory leniently: missing parts get defaults, missing metrics are computed.

    Raises `RecordError` for a trajectory that is not an object, `events` that are not objects with a string `type`,
    and an `output` that is not a string.
    """
    if not isinstance(value, Mapping):
        raise RecordError(pointer, "must be an object")
    fields = dict(value)
    output = fields.get("output", "")
    if not isinstance(output, str):
        raise RecordError(f"{pointer}/output", "must be a string")
    events = _load_events(fields.pop("events", None), f"{pointer}/events")
    if "turnDiffs" in fields:
        fields["turnDiffs"] = _turn_diff_fields(fields["turnDiffs"])
    metrics = fields.get("metrics")
    fields["metrics"] = None
    trajectory = load_model(Trajectory, fields, pointer)
    return trajectory.model_copy(update={"events": events, "metrics": _loaded_metrics(metrics, events, pointer)})


def _load_events(events: object, pointer: str) -> list[Event]:
    from vally.model.plain_events import plain_event

    if events is None:
        return []
    if not isinstance(events, list):
        raise RecordError(pointer, "must be a list")
    for index, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise RecordError(f"{pointer}/{index}", "must be an object")
        if not isinstance(event.get("type"), str):
            raise RecordError(f"{pointer}/{index}/type", "must be a string")
    return [
        plain_event(event) or load_model(Event, _event_fields(event), f"{pointer}/{index}")
        for index, event in enumerate(events)
    ]


def _event_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(event)
    if fields.get("data") is None:
        fields["data"] = {}
    moment = fields.get("timestamp")
    if isinstance(moment, (int, float)):
        parsed = parse_timestamp(moment)
        fields["timestamp"] = timestamp(parsed) if parsed else None
    if not isinstance(fields.get("turn"), int) or isinstance(fields["turn"], bool):
        fields.pop("turn", None)
    return fields


def _turn_diff_fields(value: object) -> list[Any] | None:
    # A negative turn marks an entry that is not one, so that a grader can tell it from a missing entry.
    if value is None:
        return None
    if not isinstance(value, list):
        return [{"turn": MALFORMED_TURN}]
    return [entry if _has_turn(entry) else {"turn": MALFORMED_TURN} for entry in value]


def _has_turn(entry: object) -> bool:
    return isinstance(entry, Mapping) and type(entry.get("turn")) is int


def _loaded_metrics(value: object, events: list[Event], pointer: str) -> Metrics:
    from vally.model.metrics import compute_metrics

    if not isinstance(value, Mapping):
        return compute_metrics(events)
    # Absent metrics are "not recorded", which is not the same as zero.
    absent = {field.alias or name: None for name, field in Metrics.model_fields.items()}
    return load_model(Metrics, {**absent, **value}, f"{pointer}/metrics")
