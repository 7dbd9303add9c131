"""A metric of each run and group of outcomes, summed up by the database as far as that can be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, func, select

from vally_command_results.query.joins import calls_with_outcomes, outcomes_with_evals
from vally_command_results.query.metrics import OVER_STIMULI, Metric, Pair
from vally_command_results.query.sums import OF_CALLS, PARTS, VALUES, Listed, Parts, value_of
from vally_command_results.store.schema import outcomes

NONE = "(none)"

Point = tuple[float | None, int]
"""A value and the number of outcomes behind it."""
Place = tuple[str, str]
"""Group and run."""
Conditions = Sequence[ColumnElement[bool]]


def points(
    connection: Connection, metric: Metric, conditions: Conditions, label: ColumnElement[Any]
) -> dict[str, dict[str, Point]]:
    """The points of each group by run; `label` is the column that groups."""
    asked = _Question(connection, conditions, label)
    if metric.id in PARTS:
        return _by_group(asked.summed(PARTS[metric.id]))
    if metric.id in OVER_STIMULI:
        values = asked.over_stimuli(OVER_STIMULI[metric.id])
    elif metric.id in VALUES:
        values = asked.listed(VALUES[metric.id])
    else:
        calls = asked.summed(OF_CALLS[metric.id], calls_with_outcomes)
        values = {place: value for place, (value, _) in calls.items()}
    return _by_group({place: (values.get(place), number) for place, number in asked.counts().items()})


def _by_group(found: Mapping[Place, Point]) -> dict[str, dict[str, Point]]:
    groups: dict[str, dict[str, Point]] = {}
    for (group, run_id), point in found.items():
        groups.setdefault(group, {})[run_id] = point
    return groups


class _Question:
    """Which outcomes are asked about, and by what they are grouped."""

    def __init__(self, connection: Connection, conditions: Conditions, label: ColumnElement[Any]) -> None:
        self._connection = connection
        self._conditions = conditions
        self._by = (label, outcomes.c.run_id)

    def _rows(
        self, columns: Iterable[ColumnElement[Any]], joined: FromClause, *group_by: ColumnElement[Any]
    ) -> Iterable[Any]:
        query = select(*self._by, *columns).select_from(joined).where(*self._conditions)
        return self._connection.execute(query.group_by(*self._by, *group_by))

    def counts(self) -> dict[Place, int]:
        """How many outcomes there are."""
        rows = self._rows([func.count()], outcomes_with_evals)
        return {(group or NONE, run_id): number for group, run_id, number in rows}

    def summed(self, parts: Parts, joined: FromClause = outcomes_with_evals) -> dict[Place, Point]:
        """Values that follow from sums, and the number of rows summed up."""
        numerator, denominator = parts
        sums = [numerator, numerator if denominator is None else denominator, func.count()]
        return {
            (group or NONE, run_id): (value_of(above, below, denominator is not None), number)
            for group, run_id, above, below, number in self._rows(sums, joined)
        }

    def over_stimuli(self, compute: Callable[[Iterable[Pair]], float | None]) -> dict[Place, float | None]:
        """Values that follow from the trials of each stimulus."""
        passed, judged_trials = PARTS["pass_rate"]
        assert judged_trials is not None
        pairs: defaultdict[Place, list[Pair]] = defaultdict(list)
        same = (outcomes.c.eval_id, outcomes.c.stimulus, outcomes.c.model)
        for group, run_id, judged, passes in self._rows([judged_trials, passed], outcomes_with_evals, *same):
            if judged:
                pairs[group or NONE, run_id].append((judged, passes))
        return _computed(pairs, compute)

    def listed(self, wanted: Listed) -> dict[Place, float | None]:
        """Values that follow from those of a column."""
        column, counts, compute = wanted
        query = select(*self._by, column).select_from(outcomes_with_evals)
        values: defaultdict[Place, list[float]] = defaultdict(list)
        for group, run_id, value in self._connection.execute(
            query.where(*self._conditions, counts, column.is_not(None))
        ):
            values[group or NONE, run_id].append(value)
        return _computed(values, compute)


def _computed(
    found: Mapping[Place, list[Any]], compute: Callable[[list[Any]], float | None]
) -> dict[Place, float | None]:
    return {place: compute(values) for place, values in found.items()}
