"""The trials before and after one that did not pass either."""

from __future__ import annotations

from sqlalchemy import Connection, select

from vally_command_results.store.schema import outcomes


def failing_neighbours(connection: Connection, outcome_id: str) -> tuple[str | None, str | None]:
    """Ids of the previous and next failed or errored outcome of the same run."""
    place = select(outcomes.c.run_id, outcomes.c.seq).where(outcomes.c.id == outcome_id)
    here = connection.execute(place).one()
    bad = select(outcomes.c.id).where(outcomes.c.run_id == here.run_id, outcomes.c.verdict.in_(("fail", "error")))
    before = bad.where(outcomes.c.seq < here.seq).order_by(outcomes.c.seq.desc()).limit(1)
    after = bad.where(outcomes.c.seq > here.seq).order_by(outcomes.c.seq).limit(1)
    return connection.scalar(before), connection.scalar(after)
