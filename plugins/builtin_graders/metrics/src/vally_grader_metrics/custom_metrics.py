"""`custom-metrics`: values that the run wrote to a JSON file satisfy assertions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vally import GraderInput, GraderResult, Matches, compact_json, describe_grader_value, escape_glob
from vally_grader_metrics.custom_metrics_config import Assertion, CustomMetricsConfig
from vally_grader_metrics.metrics_file import InvalidMetricsFile, read_metrics

KEYWORD = "custom-metrics"
_SCALARS = ("a number", "a boolean", "a string")


class CustomMetrics:
    """Checks every assertion; the score is the share of those that hold."""

    def grade(self, input: GraderInput[CustomMetricsConfig]) -> GraderResult:
        config = input.config
        matches = input.files.resolve(escape_glob(config.path))
        if not matches.paths:
            return _no_metrics(config, matches, f"Metrics file '{config.path}' not found")
        try:
            metrics = read_metrics(input.files, matches)
        except InvalidMetricsFile as error:
            return _no_metrics(config, matches, f"Metrics file '{config.path}' is not valid: {error}")
        return _graded(config, matches, metrics)

    def default_name(self, config: CustomMetricsConfig) -> str:
        return f"{KEYWORD} {describe_grader_value([assertion.metric for assertion in config.assertions])}"


def _no_metrics(config: CustomMetricsConfig, matches: Matches, evidence: str) -> GraderResult:
    return GraderResult.verdict(False, evidence, name=KEYWORD, metadata=_metadata(config, matches, {}))


def _metadata(config: CustomMetricsConfig, matches: Matches, metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = dict.fromkeys(assertion.metric for assertion in config.assertions)
    values = {name: metrics[name] for name in names if name in metrics}
    return {"root": matches.origin, "path": config.path, "values": values}


def _graded(config: CustomMetricsConfig, matches: Matches, metrics: Mapping[str, Any]) -> GraderResult:
    details = [_checked(assertion, metrics) for assertion in config.assertions]
    failed = [detail.evidence for detail in details if not detail.passed]
    held = len(details) - len(failed)
    return GraderResult.verdict(
        not failed,
        "; ".join([f"{held}/{len(details)} metric assertions passed", *failed]),
        score=held / len(details),
        name=KEYWORD,
        metadata=_metadata(config, matches, metrics),
        details=details,
    )


def _checked(assertion: Assertion, metrics: Mapping[str, Any]) -> GraderResult:
    name = assertion.metric
    if name not in metrics:
        return GraderResult.verdict(False, f"{name} is missing", name=name)
    value = metrics[name]
    kind, wanted = json_type(value), _SCALARS[:1] if assertion.equals is None else _SCALARS
    if kind not in wanted:
        return GraderResult.verdict(False, f"{name} is {kind} (expected {' or '.join(wanted)})", name=name)
    evidence = f"{name} = {compact_json(value)} (expected {assertion.expected})"
    return GraderResult.verdict(_holds(assertion, value), evidence, name=name)


def json_type(value: Any) -> str:
    """The type of a JSON value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list"


def _holds(assertion: Assertion, value: Any) -> bool:
    if assertion.equals is not None:
        return json_type(value) == json_type(assertion.equals) and bool(value == assertion.equals)
    return (assertion.min is None or value >= assertion.min) and (assertion.max is None or value <= assertion.max)
