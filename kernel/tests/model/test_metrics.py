"""Metrics computed from events."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vally.model.metrics import compute_metrics, settle_metrics
from vally.model.trajectory import Event, Metrics, dump_record

ZEROS: dict[str, Any] = {
    "tokenUsage": {
        "inputTokens": 0,
        "outputTokens": 0,
        "totalTokens": 0,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "callCount": 0,
        "byModel": {},
    },
    "toolCallCount": 0,
    "toolCallBreakdown": {},
    "simulatedToolCallCount": 0,
    "skillActivationCount": 0,
    "skillActivationBreakdown": {},
    "turnCount": 0,
    "errorCount": 0,
}


def _usage(model: str | None = None, **data: Any) -> Event:
    return Event(type="token_usage", data={**data, **({"model": model} if model else {})})


def _cost(amount: float, provider: str = "github-copilot", unit: str = "nano-aiu") -> Event:
    return _usage("m", inputTokens=0, outputTokens=0, cost={"provider": provider, "unit": unit, "amount": amount})


def _call(name: str, **data: Any) -> Event:
    return Event(type="tool_call", data={"toolName": name, **data})


@pytest.mark.parametrize(
    ("events", "expected", "usage", "warning_count"),
    [
        pytest.param([], {}, {}, 0, id="ME-1"),
        pytest.param(
            [
                _usage("m1", inputTokens=100, outputTokens=20, cacheReadTokens=50),
                _usage("m2", inputTokens=10, outputTokens=5),
            ],
            {},
            {
                "inputTokens": 110,
                "outputTokens": 25,
                "totalTokens": 135,
                "cacheReadTokens": 50,
                "callCount": 2,
                "byModel": {
                    "m1": {"inputTokens": 100, "outputTokens": 20, "callCount": 1},
                    "m2": {"inputTokens": 10, "outputTokens": 5, "callCount": 1},
                },
            },
            0,
            id="ME-2",
        ),
        pytest.param(
            [_call("bash"), _call("bash", simulated=True), _call("view"), Event(type="tool_result")],
            {"toolCallCount": 3, "toolCallBreakdown": {"bash": 2, "view": 1}, "simulatedToolCallCount": 1},
            {},
            0,
            id="ME-3",
        ),
        pytest.param(
            [Event(type="turn_start")] * 3 + [Event(type="turn_end", agent_id="x")] * 2,
            {"turnCount": 2},
            {},
            0,
            id="ME-4",
        ),
        pytest.param(
            [_usage(inputTokens=-1, outputTokens=7)],
            {},
            {
                "outputTokens": 7,
                "totalTokens": 7,
                "callCount": 1,
                "byModel": {"unknown": {"inputTokens": 0, "outputTokens": 7, "callCount": 1}},
            },
            1,
            id="ME-5",
        ),
        pytest.param(
            [_cost(5), _cost(7)],
            {},
            {
                "callCount": 2,
                "byModel": {"m": {"inputTokens": 0, "outputTokens": 0, "callCount": 2}},
                "cost": {"provider": "github-copilot", "unit": "nano-aiu", "amount": 12},
            },
            0,
            id="ME-6",
        ),
        pytest.param(
            [_cost(5), _cost(0.1, "openai", "usd"), _cost(1)],
            {},
            {
                "callCount": 3,
                "byModel": {"m": {"inputTokens": 0, "outputTokens": 0, "callCount": 3}},
                "costs": [
                    {"provider": "github-copilot", "unit": "nano-aiu", "amount": 6},
                    {"provider": "openai", "unit": "usd", "amount": 0.1},
                ],
            },
            0,
            id="ME-7",
        ),
        pytest.param(
            [
                Event(type="skill_activation", data={"name": "a"}),
                Event(type="skill_activation", data={}),
                Event(type="error"),
                _call(""),
            ],
            {
                "skillActivationCount": 2,
                "skillActivationBreakdown": {"a": 1, "unknown": 1},
                "errorCount": 1,
                "toolCallCount": 1,
                "toolCallBreakdown": {"unknown": 1},
            },
            {},
            0,
            id="names",
        ),
    ],
)
def test_metrics(events: list[Event], expected: dict[str, Any], usage: dict[str, Any], warning_count: int) -> None:
    warnings: list[str] = []
    metrics = dump_record(compute_metrics(events, warnings))
    assert metrics == {**ZEROS, **expected, "tokenUsage": {**ZEROS["tokenUsage"], **usage}}
    assert len(warnings) == warning_count


@pytest.mark.parametrize("count", [1.5, "7", True, math.nan, math.inf, [], -3])
def test_bad_counts_are_zero_with_one_warning(count: object) -> None:
    warnings: list[str] = []
    usage = compute_metrics([_usage(inputTokens=count, outputTokens=count)] * 2, warnings).token_usage
    assert usage is not None
    assert usage.total_tokens == 0
    assert len(warnings) == 1


def test_integral_floats_count() -> None:
    usage = compute_metrics([_usage(inputTokens=5.0)]).token_usage
    assert usage is not None
    assert usage.input_tokens == 5


def test_counts_saturate() -> None:
    usage = compute_metrics([_usage("m", inputTokens=2**53)] * 2).token_usage
    assert usage is not None
    assert (usage.input_tokens, usage.total_tokens, usage.by_model["m"].input_tokens) == (2**53 - 1,) * 3


@pytest.mark.parametrize("cost", [None, 5, {"provider": "p", "unit": "u"}, {"provider": 1, "unit": "u", "amount": 1}])
def test_costs_of_another_shape_are_ignored(cost: object) -> None:
    usage = compute_metrics([_usage(cost=cost)]).token_usage
    assert usage is not None
    assert usage.cost is None
    assert usage.costs is None


def test_executors_set_only_wall_time_and_further_keys() -> None:
    reported = Metrics(turn_count=99, wall_time_ms=1200, retries=3)  # type: ignore[call-arg]
    settled = settle_metrics(reported, [Event(type="turn_end")])
    assert dump_record(settled) == {**ZEROS, "turnCount": 1, "wallTimeMs": 1200, "retries": 3}


def test_without_reported_metrics_all_are_computed() -> None:
    assert dump_record(settle_metrics(None, [])) == ZEROS
