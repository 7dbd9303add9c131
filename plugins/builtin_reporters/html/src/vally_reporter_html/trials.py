"""One trial as the page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vally import percent, recorded_diff, redact_patterns, two_decimals
from vally_reporter_html.charts import segments
from vally_reporter_html.diffs import Diff, parse_diff
from vally_reporter_html.facts import GLYPHS, TrialFacts, trial_facts
from vally_reporter_html.selection import Level
from vally_reporter_html.text import Cut, cut, milliseconds, name, value
from vally_reporter_html.timeline import Timeline, timeline

if TYPE_CHECKING:
    from pathlib import Path

    from vally import GraderResult, TrialResult

OUTPUT_LIMIT = 20_000
PROMPT_LIMIT = 8_000
EVIDENCE_LIMIT = 4_000
DIFF_LIMIT = 200_000
MAX_GRADERS = 200
MAX_DEPTH = 8
MAX_WARNINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderView:
    """One grader with its sub-checks."""

    glyph: str
    verdict: str
    name: str
    type: str
    score: str
    weight: str
    evidence: Cut
    required: bool
    error: str
    facts: tuple[tuple[str, str], ...]
    details: tuple[GraderView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """A trial with as much of it as its level allows; parts that are not shown are None."""

    anchor: str
    title: str
    label: str
    facts: TrialFacts
    is_full: bool
    is_flaky: bool
    score: str
    error: Cut
    error_code: str
    skip_reason: str
    graders: tuple[GraderView, ...]
    figures: tuple[tuple[str, str], ...]
    phases: tuple[tuple[str, str, float, float], ...]
    warnings: tuple[str, ...]
    turns: tuple[Cut, ...] = ()
    output: Cut | None = None
    timeline: Timeline | None = None
    diff: Diff | None = None
    diff_problem: str = ""


def trial_view(
    result: TrialResult, *, anchor: str, threshold: float | None, level: Level, run_dir: Path, is_flaky: bool = False
) -> TrialView:
    """The view of a record; `run_dir` is the directory of its results file, `is_flaky` says it of the stimulus."""
    facts = trial_facts(result, threshold)
    number = f"trial {result.trial_index + 1}/{result.total_trials}" if result.total_trials > 1 else ""
    weights = ((result.grade_result.metadata or {}).get("weights") if result.grade_result else None) or {}
    graders = tuple(_graders((result.grade_result.details or []) if result.grade_result else [], weights))
    trajectory = result.trajectory if level is Level.FULL else None
    diff, problem = (None, "") if trajectory is None else _diff(result, run_dir)
    return TrialView(
        anchor=anchor,
        title=name(result.stimulus),
        label=number,
        facts=facts,
        is_full=level is Level.FULL,
        is_flaky=is_flaky,
        score="–" if facts.score is None else two_decimals(facts.score),
        error=cut(redact_patterns(result.error or ""), EVIDENCE_LIMIT) if result.status == "error" else Cut(""),
        error_code=name(result.error_info.code) if result.error_info else "",
        skip_reason=name(result.skip_reason or "no reason given") if result.status == "skipped" else "",
        graders=graders,
        figures=tuple(_figures(result, facts)),
        phases=tuple(_phases(result)),
        warnings=tuple(name(text) for text in (result.warnings or [])[:MAX_WARNINGS]),
        turns=tuple(_turns(trajectory.stimulus)) if trajectory else (),
        output=cut(trajectory.output, OUTPUT_LIMIT) if trajectory else None,
        timeline=timeline(trajectory.events) if trajectory else None,
        diff=diff,
        diff_problem=problem,
    )


def _graders(items: Sequence[GraderResult], weights: dict[str, Any], depth: int = 0) -> list[GraderView]:
    if depth >= MAX_DEPTH:
        return []
    return [_grader(item, weights.get(item.name), depth) for item in items[:MAX_GRADERS]]


def _grader(item: GraderResult, weight: Any, depth: int) -> GraderView:
    verdict = "error" if item.status == "error" else "pass" if item.passed else "fail"
    metadata = item.metadata or {}
    error = metadata.get("error")
    return GraderView(
        glyph=GLYPHS[verdict],
        verdict=verdict,
        name=name(item.name or item.grader_type or ""),
        type=name(item.grader_type) if item.grader_type and item.grader_type != item.name else "",
        score="–" if verdict == "error" else two_decimals(item.score),
        weight=f"{weight:g}" if isinstance(weight, (int, float)) and weight != 1 else "",
        evidence=cut(item.evidence, EVIDENCE_LIMIT),
        required=metadata.get("required") is True,
        error=name(str(error.get("kind"))) if isinstance(error, dict) and error.get("kind") else "",
        facts=tuple(_scalars(metadata)),
        details=tuple(_graders(item.details or [], {}, depth + 1)),
    )


def _scalars(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    facts = []
    for key, item in metadata.items():
        if key not in ("required", "error", "weights") and isinstance(item, (str, int, float, bool)):
            text = " ".join(value(item, 300).text.split())
            if text:
                facts.append((name(key), text))
    return facts[:12]


def _figures(result: TrialResult, facts: TrialFacts) -> list[tuple[str, str]]:
    trajectory = result.trajectory
    metrics = trajectory.metrics if trajectory else None
    usage = metrics.token_usage if metrics else None
    rows = [("Duration", milliseconds(result.duration_ms))]
    if metrics is not None:
        rows += [("Turns", f"{facts.turns:,}"), ("Tool calls", f"{facts.tool_calls:,}")]
    if usage is not None and usage.total_tokens:
        rows.append(("Tokens in / out", f"{usage.input_tokens:,} / {usage.output_tokens:,}"))
        if usage.cache_read_tokens and usage.input_tokens:
            rows.append(("Cached", percent(min(1.0, usage.cache_read_tokens / usage.input_tokens))))
    if result.judge_usage is not None and result.judge_usage.call_count:
        rows.append(("Judge tokens", f"{result.judge_usage.total_tokens:,}"))
    if metrics is not None and metrics.error_count:
        rows.append(("Errors", f"{metrics.error_count:,}"))
    if metrics is not None and metrics.skill_activation_breakdown:
        rows.append(
            ("Skills used", ", ".join(name(skill) for skill in sorted(metrics.skill_activation_breakdown)[:20]))
        )
    rows += _circumstances(result)
    return rows


def _circumstances(result: TrialResult) -> list[tuple[str, str]]:
    trajectory = result.trajectory
    metadata = trajectory.metadata if trajectory else {}
    known = [
        ("Model used", metadata.get("model")),
        ("Ended", trajectory.end_reason if trajectory else None),
        ("Attempts", result.attempts if result.attempts and result.attempts > 1 else None),
        ("Seed", result.seed),
        ("Backend", result.backend),
        ("Started", result.started_at),
        ("Item", result.item_id),
    ]
    return [(label, name(str(item))) for label, item in known if item not in (None, "")]


def _phases(result: TrialResult) -> list[tuple[str, str, float, float]]:
    phases = result.phases
    if phases is None:
        return []
    parts = [
        ("set-up", phases.setup_ms),
        ("agent", phases.agent_ms),
        ("capture", phases.capture_ms),
        ("grade", phases.grade_ms),
    ]
    return [(label, milliseconds(took), start, width) for label, took, start, width in segments(parts)]


def _turns(stimulus: dict[str, Any]) -> list[Cut]:
    turns = stimulus.get("turns")
    if isinstance(turns, list) and turns:
        texts = [turn.get("prompt", turn.get("content")) if isinstance(turn, dict) else turn for turn in turns]
        return [value(text, PROMPT_LIMIT) for text in texts[:50]]
    prompt = stimulus.get("prompt")
    return [cut(prompt, PROMPT_LIMIT)] if isinstance(prompt, str) and prompt else []


def _diff(result: TrialResult, run_dir: Path) -> tuple[Diff | None, str]:
    trajectory = result.trajectory
    assert trajectory is not None
    if trajectory.diff is None and trajectory.diff_path is None and trajectory.diff_error is None:
        return None, ""
    text, problem = recorded_diff(trajectory, run_dir)
    if text is None:
        return None, name(problem or "")
    shown = cut(text, DIFF_LIMIT)
    diff = parse_diff(shown.text)
    missing = text.count("\n") - shown.text.count("\n") if shown.omitted else 0
    return Diff(diff.files, diff.omitted + missing), ""
