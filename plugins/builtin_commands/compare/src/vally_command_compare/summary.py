"""The comparison record: what the judged pairs amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vally import clustered_mean, mcnemar, mean, mean_interval, paired_interval, sign_test, wilson_interval
from vally_command_compare.judging import JudgedPair
from vally_command_compare.pairing import Pairing
from vally_command_compare.power import POWER, stimuli_needed
from vally_command_compare.sides import METRICS

Document = dict[str, Any]


def comparison_record(
    names: Mapping[str, str], pairing: Pairing, judged: Sequence[JudgedPair], effect: float
) -> Document:
    """The record of one comparison. `names` are its first fields; advice is about differences of size `effect`."""
    return {
        "type": "comparison",
        **names,
        "summary": _summary(pairing, judged, effect),
        "stimuli": [_stimulus(name, group) for name, group in _by_stimulus(judged).items()],
        "unmatchedBaseline": list(pairing.unmatched_baseline),
        "unmatchedTreatment": list(pairing.unmatched_treatment),
        "censored": list(pairing.censored),
    }


def _by_stimulus(judged: Sequence[JudgedPair]) -> dict[str, list[JudgedPair]]:
    groups: dict[str, list[JudgedPair]] = {}
    for item in judged:
        groups.setdefault(item.pair.baseline.stimulus, []).append(item)
    return groups


def _stimulus(name: str, group: Sequence[JudgedPair]) -> Document:
    scores = [item.result.score for item in group if not item.result.errored]
    return {
        "stimulusName": name,
        "meanScore": mean(scores) if scores else 0.0,
        "trials": [_trial(item) for item in group],
    }


def _trial(item: JudgedPair) -> Document:
    result, pair = item.result, item.pair
    document: Document = {
        "trialIndex": pair.baseline.trial_index,
        "winner": result.winner,
        "magnitude": result.magnitude,
        "score": result.score,
        "evidence": result.evidence,
        "criteria": [dict(criterion) for criterion in result.criteria],
        "metricDeltas": _deltas(item),
        "baselinePassed": pair.baseline.passed,
        "treatmentPassed": pair.treatment.passed,
    }
    return {**document, "errored": True} if result.errored else document


def _deltas(item: JudgedPair) -> dict[str, float]:
    before, after = item.pair.baseline.metrics, item.pair.treatment.metrics
    return {name: after[name] - before[name] for name in METRICS if name in before and name in after}


def _summary(pairing: Pairing, judged: Sequence[JudgedPair], effect: float) -> Document:
    counted = [item for item in judged if not item.result.errored]
    scores = [item.result.score for item in counted]
    interval = mean_interval(scores)
    winners = [item.result.winner for item in counted]
    wins = winners.count("treatment")
    return {
        "trialCount": len(counted),
        "erroredCount": len(judged) - len(counted),
        "meanScore": interval.mean or 0.0,
        "ciLow": interval.low,
        "ciHigh": interval.high,
        "wins": wins,
        "ties": winners.count("tie"),
        "losses": winners.count("baseline"),
        "winRate": wins / len(counted) if counted else 0.0,
        "mcnemar": _mcnemar(pairing),
        "metricDeltas": _metric_deltas(counted),
        "stats": _stats(pairing, counted, effect),
    }


def _mcnemar(pairing: Pairing) -> Document:
    # Verdicts do not depend on the judge of the comparison, so pairs on which it failed count too.
    verdicts = [
        (pair.baseline.passed, pair.treatment.passed)
        for pair in pairing.judged
        if pair.baseline.passed is not None and pair.treatment.passed is not None
    ]
    before, after = verdicts.count((True, False)), verdicts.count((False, True))
    test = mcnemar(before, after)
    return {
        "baselineOnly": before,
        "treatmentOnly": after,
        "concordant": len(verdicts) - before - after,
        "pValue": test.p_value,
        "exact": test.exact,
    }


def _metric_deltas(counted: Sequence[JudgedPair]) -> list[Document]:
    deltas = [_deltas(item) for item in counted]
    return [
        _metric_delta(name, [each[name] for each in deltas if name in each])
        for name in METRICS
        if any(name in each for each in deltas)
    ]


def _metric_delta(name: str, values: Sequence[float]) -> Document:
    interval = mean_interval(values)
    centre, deviation = interval.mean or 0.0, interval.std_dev
    return {
        "metric": name,
        "mean": centre,
        "ciLow": interval.low,
        "ciHigh": interval.high,
        "stdDev": deviation,
        "highVariance": deviation is not None and deviation > abs(centre),
    }


def _stats(pairing: Pairing, counted: Sequence[JudgedPair], effect: float) -> Document:
    groups = _by_stimulus(counted)
    means = [mean([item.result.score for item in group]) for group in groups.values()]
    clusters = clustered_mean(means)
    signs = sign_test([_votes(group) for group in groups.values()])
    return {
        "clusters": clusters.clusters,
        "clusterMean": clusters.mean,
        "clusterStdError": clusters.std_error,
        "clusterCiLow": clusters.low,
        "clusterCiHigh": clusters.high,
        "signTest": {
            "wins": signs.wins,
            "losses": signs.losses,
            "ties": signs.ties,
            "pValue": signs.p_value,
            "underpowered": signs.underpowered,
        },
        "passRate": {
            "baseline": _pass_rate([pair.baseline.passed for pair in pairing.judged]),
            "treatment": _pass_rate([pair.treatment.passed for pair in pairing.judged]),
        },
        "scoreDelta": _score_delta(pairing),
        "censoredCount": len(pairing.censored),
        "advice": {"effect": effect, "power": POWER, "stimuli": stimuli_needed(mean_interval(means).std_dev, effect)},
    }


def _votes(group: Sequence[JudgedPair]) -> tuple[int, int]:
    winners = [item.result.winner for item in group]
    return winners.count("treatment"), winners.count("baseline")


def _pass_rate(verdicts: Sequence[bool | None]) -> Document:
    known = [verdict for verdict in verdicts if verdict is not None]
    passed = sum(known)
    interval = wilson_interval(passed, len(known))
    return {
        "passed": passed,
        "total": len(known),
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
    }


def _score_delta(pairing: Pairing) -> Document:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for pair in pairing.judged:
        if pair.baseline.score is not None and pair.treatment.score is not None:
            pairs.setdefault(pair.baseline.stimulus, []).append((pair.baseline.score, pair.treatment.score))
    estimate = paired_interval(pairs)
    return {
        "clusters": estimate.clusters,
        "mean": estimate.mean,
        "stdError": estimate.std_error,
        "ciLow": estimate.low,
        "ciHigh": estimate.high,
    }
