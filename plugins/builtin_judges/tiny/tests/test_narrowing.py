"""The schema of the grammar allows what the check of a request accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vally_judge_tiny.narrowing import MOST_TOKENS, longest_answer, narrowed

Schema = Mapping[str, Any]


def scores(found: Mapping[str, Any]) -> Any:
    return found["properties"]["scores"]


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0, 1), (1, 1, 5), (3, 1, 10), (50, 0, 0)])
def test_counts_and_numbers(schema: Schema, count: int, low: int, high: int) -> None:
    def wanted(args: Mapping[str, Any]) -> str | None:
        numbers = [args["overall"], *(item["score"] for item in args["scores"])]
        fits = len(args["scores"]) == count and all(low <= number <= high for number in numbers)
        return None if fits else "no"

    found = narrowed(schema, wanted)
    assert (scores(found)["minItems"], scores(found)["maxItems"]) == (count, count)
    assert found["properties"]["overall"] == {"enum": list(range(low, high + 1))}


def test_what_no_example_satisfies_stays_open(schema: Schema) -> None:
    found = narrowed(schema, lambda _: "never")
    assert "minItems" not in scores(found)
    assert found["properties"]["overall"] == {"type": "number"}


def test_texts_share_a_budget(schema: Schema) -> None:
    def limit(count: int) -> int:
        found = narrowed(schema, lambda args: None if len(args["scores"]) == count else "no")  # type: ignore[arg-type]
        length: int = scores(found)["items"]["properties"]["why"]["maxLength"]
        return length

    assert [limit(count) for count in (1, 10, 50)] == [80, 60, 12]


def test_choices_and_truth_values_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["A", "B"]}, "sure": {"type": "boolean"}},
        "required": ["verdict", "sure"],
    }
    assert narrowed(schema, lambda args: None if args == {"verdict": "A", "sure": False} else "no") == schema


def test_there_is_room_for_every_answer(schema: Schema) -> None:
    few, many = (
        longest_answer(narrowed(schema, lambda args, n=n: None if len(args["scores"]) == n else "no"))  # type: ignore[misc]
        for n in (1, 50)
    )
    assert 200 < few < many <= MOST_TOKENS
    assert longest_answer({"type": "array", "items": schema}) == MOST_TOKENS
