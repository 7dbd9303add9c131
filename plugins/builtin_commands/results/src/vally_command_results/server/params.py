"""The parameters of the API; unknown ones and malformed values are errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, cast, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from vally import parse_timestamp, timestamp
from vally_command_results.query.errors import QueryError
from vally_command_results.query.filters import OutcomeFilter, RunFilter
from vally_command_results.query.metrics import METRICS
from vally_command_results.query.paging import DEFAULT_LIMIT, MAX_LIMIT, PageRequest


def _alternatives(value: object) -> object:
    """Values of a repeated parameter, and of comma lists in it."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple(part for item in values if isinstance(item, str) for part in item.split(",") if part)


_SEPARATOR = re.compile(r"(?<!\\),")


def _split(item: str) -> Iterator[str]:
    """The whole first: names of variants such as `skill=off,model=a` have commas. `\\,` separates nothing."""
    parts = [part for part in _SEPARATOR.split(item) if part]
    if len(parts) > 1:
        yield item
    yield from (part.replace("\\,", ",") for part in parts)


def _names(value: object) -> object:
    """Names of a repeated parameter, each of which may be one or a comma list."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple(dict.fromkeys(part for item in values if isinstance(item, str) for part in _split(item)))


def _tags(value: object) -> object:
    """Like names, each a key and a value; what stands between two commas of a value is none."""
    values = [item for item in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(item, str)]
    wrong = next((item for item in values if item and ":" not in item), None)
    if wrong is not None:
        raise ValueError("is not of the form key:value")
    return tuple(part for part in cast("tuple[str, ...]", _names(values)) if ":" in part)


def _each(value: object) -> object:
    """Texts as they are: a comma may be part of what is looked for."""
    return tuple(item for item in (value if isinstance(value, (list, tuple)) else [value]) if item)


def _time(value: object) -> object:
    moment = parse_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError("is not a time such as 2026-07-24T01:00:00Z")
    return timestamp(moment)


LARGEST = 2**63 - 1
"""What columns of numbers hold."""


def _storable(value: str) -> str:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("holds a character that no stored text has")
    return value


def _metric(value: str) -> str:
    if value not in METRICS:
        raise ValueError(f"no metric '{value}'; there are {', '.join(METRICS)}")
    return value


Text = Annotated[str, AfterValidator(_storable), Field(max_length=1024)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_names)]
Tags = Annotated[tuple[Text, ...], BeforeValidator(_tags)]
Searches = Annotated[tuple[Text, ...], BeforeValidator(_each)]
RunId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Numbers = Annotated[tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...], BeforeValidator(_alternatives)]
Moment = Annotated[str, BeforeValidator(_time), Field(json_schema_extra={"format": "date-time"})]
Time = Moment | None
MetricName = Annotated[str, AfterValidator(_metric), Field(json_schema_extra={"enum": [*METRICS]})]
Kinds = Annotated[tuple[Literal["eval", "experiment", "grade"], ...], BeforeValidator(_alternatives)]
Distributed = Literal["duration_ms", "wall_time_ms", "score", "turns", "tool_calls", "total_tokens"]
DistributedBy = Literal["model", "eval", "verdict"]
Verdict = Literal["pass", "fail", "error", "skipped", "ungraded"]
RunSort = Literal["-startedAt", "startedAt", "name", "-passRate", "passRate", "-durationMs"]
OutcomeSort = Literal[
    "seq", "-startedAt", "score", "-score", "durationMs", "-durationMs", "totalTokens", "-totalTokens"
]


class Parameters(BaseModel):
    """Parameters of an endpoint, in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class NoParameters(Parameters):
    """An endpoint without parameters."""


class Page(Parameters):
    """Which page."""

    cursor: Text | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT

    @property
    def request(self) -> PageRequest:
        """The same for questions to the store."""
        return PageRequest(self.cursor, self.limit)


class RunFilters(Parameters):
    """Which runs."""

    q: Searches = ()
    eval_name: Texts = ()
    model: Texts = ()
    variant: Texts = ()
    kind: Kinds = ()
    group: Texts = ()
    verdict: Annotated[
        tuple[Literal["pass", "fail", "error", "partial", "incomplete"], ...], BeforeValidator(_alternatives)
    ] = ()
    since: Time = None
    until: Time = None

    def filter(self) -> RunFilter:
        """The same for questions to the store."""
        return RunFilter(**_fields(self, RunFilter.__dataclass_fields__))


class Runs(RunFilters, Page):
    """A list of runs."""

    sort: RunSort = "-startedAt"


class OfOutcomes(Parameters):
    """Parameters that choose outcomes."""

    def filter(self, *run_ids: str) -> OutcomeFilter:
        """The same for questions to the store; of these runs when there are any."""
        chosen = _fields(self, OutcomeFilter.__dataclass_fields__)
        return OutcomeFilter(**{**chosen, "run_id": run_ids} if run_ids else chosen)


class OutcomeFilters(OfOutcomes):
    """Which outcomes."""

    eval_name: Texts = ()
    stimulus: Texts = ()
    q: Searches = ()
    model: Texts = ()
    variant: Texts = ()
    status: Annotated[tuple[Literal["success", "error", "skipped"], ...], BeforeValidator(_alternatives)] = ()
    verdict: Annotated[tuple[Verdict, ...], BeforeValidator(_alternatives)] = ()
    trial_index: Numbers = ()
    tag: Tags = ()
    grader: Texts = ()
    grader_passed: bool | None = None
    tool: Texts = ()
    min_score: Annotated[float | None, Field(ge=0, le=1)] = None
    max_score: Annotated[float | None, Field(ge=0, le=1)] = None


class RunOutcomes(OutcomeFilters, Page):
    """A list of the outcomes of a run."""

    sort: OutcomeSort | None = None


class Outcomes(RunOutcomes):
    """A list of outcomes of all runs."""

    run_id: Texts = ()


class Events(Page):
    """A page of a trajectory."""

    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = MAX_LIMIT
    type: Texts = ()
    turn: Numbers = ()
    agent_id: Texts = ()


class DiffTurn(Parameters):
    """Whose diff."""

    turn: Annotated[int | None, Field(ge=0, le=LARGEST)] = None


class Some(OfOutcomes):
    """Which outcomes of a run a table is about."""

    eval_name: Texts = ()
    stimulus: Texts = ()
    model: Texts = ()


class Graders(Some):
    """The graders of a run."""

    depth: Annotated[int, Field(ge=0, le=1)] = 0


class Matrix(OfOutcomes):
    """The axes of a score matrix."""

    metric: MetricName = "pass_rate"
    rows: Annotated[str, Field(pattern=r"^(stimulus|eval|grader|graderType|tag:.+)$", max_length=1024)] = "stimulus"
    columns: Literal["model", "variant", "eval"] = "model"
    eval_name: Texts = ()
    model: Texts = ()
    tag: Tags = ()


class Compare(Parameters):
    """Which runs to compare."""

    runs: Annotated[tuple[RunId, ...], BeforeValidator(_alternatives), Field(min_length=2, max_length=6)]
    metric: MetricName = "pass_rate"
    eval_name: Texts = ()
    only_changed: bool = False


class Trends(Parameters):
    """What to follow over runs."""

    metric: MetricName = "pass_rate"
    group_by: Literal["eval", "stimulus", "model", "variant"] = "eval"
    eval_name: Texts = ()
    stimulus: Texts = ()
    model: Texts = ()
    kind: Kinds = ()
    since: Time = None
    until: Time = None
    limit: Annotated[int, Field(ge=1, le=200)] = 200

    def filters(self) -> tuple[RunFilter, OutcomeFilter]:
        """Which runs, and which of their outcomes."""
        runs = RunFilter(**_fields(self, ("eval_name", "model", "kind", "since", "until")))
        return runs, OutcomeFilter(**_fields(self, ("eval_name", "stimulus", "model")))


class GradersAcross(Parameters):
    """Which runs the graders of all runs are about."""

    eval_name: Texts = ()
    model: Texts = ()
    since: Time = None
    until: Time = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT

    def filter(self) -> RunFilter:
        """The same for questions to the store."""
        return RunFilter(**_fields(self, ("eval_name", "model", "since", "until")))


class Distribution(Parameters):
    """What a histogram shows."""

    metric: Distributed = "duration_ms"
    bins: Annotated[int, Field(ge=1, le=100)] = 20
    group_by: DistributedBy = "model"


class Comparisons(Page):
    """A list of judged comparisons."""

    group: Texts = ()


def _fields(parameters: Parameters, names: Iterable[str]) -> dict[str, Any]:
    known = type(parameters).model_fields
    return {name: getattr(parameters, name) for name in names if name in known}


def _kinds(model: type[Parameters]) -> Iterator[type[Parameters]]:
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds(kind)


LISTS = frozenset(
    field.alias or name
    for kind in _kinds(Parameters)
    for name, field in kind.model_fields.items()
    if get_origin(field.annotation) is tuple
)
"""The parameters that may be given more than once."""


def check_repeats(names: Sequence[str]) -> None:
    """Raise `QueryError` for a parameter with one value that was given twice: no answer could heed both."""
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1 and name not in LISTS]
    if repeated:
        message = "; ".join(f"{name}: given more than once" for name in repeated)
        raise QueryError("invalid_params", 400, message)
