"""The report for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vally import Style, cells, fixed, name_line, one_line, pad, percent, signed, two_decimals
from vally_command_compare.sides import METRICS
from vally_command_compare.wording import cautions, closing_words

Record = Mapping[str, Any]
_LABELS = dict(zip(METRICS, ("tokens", "turns", "tool calls", "wall time", "errors"), strict=True))
_ARROWS = {1: "▲", 0: "=", -1: "▼"}
_COLORS = {1: "green", 0: "dim", -1: "red"}


def report_lines(
    record: Record, baselines: Mapping[str, float], judge: str, style: Style, *, min_effect: float, verbose: bool
) -> Iterator[str]:
    """One comparison; `baselines` are the mean metrics of the baseline's trials."""
    summary = record["summary"]
    yield _title(record, judge, style)
    width = max((cells(name_line(item["stimulusName"])) for item in record["stimuli"]), default=0)
    for item in record["stimuli"]:
        yield _stimulus(item, width, style)
        if verbose:
            yield from _trials(item)
    yield _numbers(record)
    yield from _verdicts(summary)
    deltas = _metrics(summary["metricDeltas"], baselines)
    if deltas:
        yield f"  {deltas}"
    yield from _clusters(summary["stats"])
    yield from _leftovers(record, verbose)
    yield style.paint(closing_words(summary, min_effect), "bold")
    for caution in cautions(summary, min_effect):
        yield f"  {caution}"


def _title(record: Record, judge: str, style: Style) -> str:
    sides = f"{name_line(record['baseline'])} → {name_line(record['treatment'])}"
    parts = [f"{style.paint('Compare', 'bold')}  {sides}"]
    if record.get("evalFile"):
        parts.append(name_line(record["evalFile"]))
    if record.get("model"):
        parts.append(name_line(record["model"]))
    parts.append(f"judge {name_line(judge)}")
    return "   ".join(parts)


def _stimulus(item: Record, width: int, style: Style) -> str:
    counted = [trial for trial in item["trials"] if not trial.get("errored")]
    winners = [trial["winner"] for trial in counted]
    mean = item["meanScore"]
    sign = (mean > 0) - (mean < 0)
    counts = f"{winners.count('treatment')}W {winners.count('tie')}T {winners.count('baseline')}L"
    errored = len(item["trials"]) - len(counted)
    name = pad(name_line(item["stimulusName"]), width)
    arrow = style.paint(_ARROWS[sign], _COLORS[sign]) if counted else style.glyph("⚠")
    shown = signed(mean, 2) if counted else "n/a  "
    return f"  {arrow} {name}   {shown}   {counts}" + (f"   {errored} errored" if errored else "")


def _trials(item: Record) -> Iterator[str]:
    for trial in item["trials"]:
        outcome = "errored" if trial.get("errored") else trial["magnitude"]
        yield f"      trial {trial['trialIndex']}  {outcome}: {one_line(trial['evidence'])}"
        for criterion in trial["criteria"]:
            text = f"{one_line(str(criterion['criterion']))}: {criterion['magnitude']}"
            yield f"        {text}: {one_line(str(criterion['evidence']))}"


def _numbers(record: Record) -> str:
    summary = record["summary"]
    unmatched = len(record["unmatchedBaseline"]) + len(record["unmatchedTreatment"])
    parts = [f"{summary['trialCount']} trials, {summary['erroredCount']} errored, {unmatched} unmatched"]
    if record["censored"]:
        parts[0] += f", {len(record['censored'])} censored"
    measured = summary["trialCount"] > 0
    mean = signed(summary["meanScore"], 2) if measured else "n/a"
    wins = percent(summary["winRate"]) if measured else "n/a"
    return f"  mean {mean}  95% CI {_interval(summary['ciLow'], summary['ciHigh'])}   win rate {wins}   {parts[0]}"


def _interval(low: float | None, high: float | None) -> str:
    return "n/a" if low is None or high is None else f"[{signed(low, 2)}, {signed(high, 2)}]"


def _verdicts(summary: Record) -> Iterator[str]:
    test = summary["mcnemar"]
    total = test["baselineOnly"] + test["treatmentOnly"] + test["concordant"]
    if total:
        p_value = "n/a" if test["pValue"] is None else two_decimals(test["pValue"])
        yield f"  verdicts: {test['treatmentOnly']} fixed, {test['baselineOnly']} broken (McNemar p = {p_value})"


def _metrics(deltas: Sequence[Record], baselines: Mapping[str, float]) -> str:
    return "   ".join(_metric(item, baselines.get(item["metric"])) for item in deltas if item["mean"] or _usual(item))


def _usual(item: Record) -> bool:
    return bool(item["metric"] != "errorCount")


def _metric(item: Record, baseline: float | None) -> str:
    name, mean = item["metric"], item["mean"]
    if name == "totalTokens":
        share = f" ({signed(100 * mean / baseline, 0)}%)" if baseline else ""
        text = f"{int(fixed(mean, 0)):+,}{share}"
    elif name == "wallTimeMs":
        text = f"{signed(mean / 1000, 1)}s"
    else:
        text = signed(mean, 1)
    return f"{_LABELS[name]} {text}"


def _clusters(stats: Record) -> Iterator[str]:
    if stats["clusters"] < 2:
        return
    test = stats["signTest"]
    p_value = "n/a" if test["pValue"] is None else two_decimals(test["pValue"])
    yield (
        f"  by stimulus: mean {signed(stats['clusterMean'], 2)}"
        f"  95% CI {_interval(stats['clusterCiLow'], stats['clusterCiHigh'])}"
        f"   {test['wins']} better, {test['losses']} worse, {test['ties']} tied (sign test p = {p_value})"
    )


def _leftovers(record: Record, verbose: bool) -> Iterator[str]:
    lists = (
        ("only in the baseline", record["unmatchedBaseline"]),
        ("only in the treatment", record["unmatchedTreatment"]),
        ("cut by a limit, not compared", record["censored"]),
    )
    for title, names in lists:
        if names:
            shown = names if verbose else names[:5]
            more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
            yield f"  {title}: {', '.join(map(name_line, shown))}{more}"
