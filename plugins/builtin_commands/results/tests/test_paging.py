"""Pages neither lose nor repeat rows while others are added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vally_command_results.query.errors import QueryError
from vally_command_results.query.paging import PageRequest, slice_of


def pages(kit: Any, path: str, limit: int, between: Any = lambda _: None, **params: Any) -> list[str]:
    found, cursor, number = [], None, 0
    while True:
        given = {**params, "limit": limit, **({} if cursor is None else {"cursor": cursor})}
        page = kit.get(path, **given)
        found += [item["id"] for item in page["items"]]
        cursor = page["page"]["nextCursor"]
        assert page["page"]["hasMore"] == (cursor is not None)
        if cursor is None:
            return found
        number += 1
        between(number)


@pytest.mark.parametrize("sort", [None, "seq", "-startedAt", "score", "-score", "durationMs", "-totalTokens"])
def test_pages_of_one_row_while_runs_are_added(kit: Any, trial: Any, sort: str | None) -> None:
    kit.run()
    kit.ingest()
    old = {item["id"] for item in kit.get("/outcomes")["items"]}
    params = {} if sort is None else {"sort": sort}

    def add(number: int) -> None:
        kit.run(
            f"runs/new{number}", [trial("s", 0, runId=f"n{number}", startedAt=f"2026-07-{10 + number}T00:00:00.000Z")]
        )
        kit.ingest()

    found = pages(kit, "/outcomes", 1, lambda number: add(number) if number < 4 else None, **params)
    assert len(found) == len(set(found))
    assert old <= set(found)


@pytest.mark.parametrize("sort", ["-startedAt", "startedAt", "name", "-passRate", "passRate", "-durationMs"])
def test_every_order_of_runs_shows_each_once(kit: Any, trial: Any, sort: str) -> None:
    for number in range(5):
        # Some have no time, no rate, and equal names.
        fields = {"startedAt": None, "trajectory": None} if number % 2 else {}
        kit.run(f"runs/r{number}", [trial("s", 0, number == 0 or None, runId=f"r{number}", **fields)])
    kit.ingest()
    found = pages(kit, "/runs", 2, sort=sort)
    assert len(found) == len(set(found)) == 5


def test_a_cursor_of_another_question_is_refused(kit: Any) -> None:
    kit.run()
    kit.ingest()
    cursor = kit.get("/outcomes", limit=1)["page"]["nextCursor"]
    for params in ({"verdict": "pass"}, {"sort": "score"}):
        answer = kit.client().get("/api/outcomes", params={"cursor": cursor, **params})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_cursor")
    other = kit.client().get("/api/runs", params={"cursor": cursor})
    assert other.json()["error"]["code"] == "invalid_cursor"


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_as_a_cursor_is_refused_or_a_place(text: str) -> None:
    with pytest.raises(QueryError, match="cursor"):
        slice_of([1, 2, 3], PageRequest(text or "x", 1), {})


@given(st.lists(st.integers(), max_size=30), st.integers(1, 7))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_slices_make_the_whole(items: list[int], limit: int) -> None:
    found: list[int] = []
    cursor = None
    while True:
        page = slice_of(items, PageRequest(cursor, limit), {"of": "items"})
        found += page["items"]
        cursor = page["page"]["nextCursor"]
        if cursor is None:
            break
    assert found == items
