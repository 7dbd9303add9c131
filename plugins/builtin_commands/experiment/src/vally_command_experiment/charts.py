"""Charts as inline SVG; colours are classes that the page's style sheet sets, for light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from vally import cut_to_cells, signed, two_decimals
from vally_command_experiment.report_data import Arm, Report

ROW = 30
LABEL = 230
PLOT = 420
RIGHT = 60
MOST_CELLS = 28


def score_chart(arms: Sequence[Arm]) -> str:
    """Mean score of each arm with its 95 % interval over stimuli."""
    marks: list[str] = []
    for place, arm in enumerate(arms):
        y = place * ROW + ROW / 2
        marks.append(_label(_arm_name(arms, arm), y))
        if arm.mean_score is None:
            marks.append(_text(LABEL + 4, y, "not measured", "muted"))
            continue
        interval = ""
        if arm.score_low is not None and arm.score_high is not None:
            marks.append(_line(_x(arm.score_low), y, _x(arm.score_high), y, "interval"))
            interval = f" (95 % CI {two_decimals(arm.score_low)} to {two_decimals(arm.score_high)})"
        kind = "dot baseline" if arm.is_baseline else "dot"
        mean = two_decimals(arm.mean_score)
        title = f"{arm.label}: {mean}{interval}"
        marks.append(
            f'<circle class="{kind}" cx="{_x(arm.mean_score):.1f}" cy="{y:.1f}" r="6">{_title(title)}</circle>'
        )
        marks.append(_text(LABEL + PLOT + 12, y, mean, "value"))
    return _chart(
        "Mean score by variant, with 95 % intervals over stimuli", len(arms), [*_grid(len(arms), 0, 1), *marks]
    )


def delta_chart(report: Report, arm: int, baseline: int) -> str:
    """For each stimulus the score of an arm minus that of the baseline."""
    rows = [(row.name, row.delta(arm, baseline)) for row in report.score_rows()]
    measured = [(name, delta) for name, delta in rows if delta is not None]
    marks: list[str] = []
    for place, (name, delta) in enumerate(sorted(measured, key=lambda item: (-item[1], item[0]))):
        y = place * ROW + ROW / 2
        zero, end = _x(0.5), _x((delta + 1) / 2)
        kind = "better" if delta > 0 else "worse" if delta < 0 else "same"
        width = max(abs(end - zero), 1.5)
        box = f'x="{min(zero, end):.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14" rx="2"'
        marks.append(f'<rect class="{kind}" {box}>{_title(f"{name}: {signed(delta, 2)}")}</rect>')
        marks.append(_label(name, y))
        marks.append(_text(LABEL + PLOT + 12, y, signed(delta, 2), "value"))
    title = f"Score of {report.arms[arm].label} minus the baseline, by stimulus"
    return _chart(title, len(measured), [*_grid(len(measured), -1, 1), *marks]) if measured else ""


def cost_chart(report: Report) -> str:
    """Mean score against cost per trial, or tokens where no cost is known; empty without either."""
    unit = _unit(report.arms)
    points = [
        (arm, x, arm.mean_score)
        for arm in report.arms
        if arm.mean_score is not None and (x := arm.tokens if unit is None else arm.costs.get(unit))
    ]
    if not points:
        return ""
    top, height = max(x for _, x, _ in points) * 1.1, 260
    marks = [
        _line(60, 10, 60, height, "axis"),
        _line(60, height, 60 + PLOT, height, "axis"),
        *(_text(30, height - share * (height - 20), f"{share:.1f}", "muted") for share in (0, 0.5, 1)),
        _text(60, height + 18, "0", "muted"),
        _text(60 + PLOT - 50, height + 18, f"{top:,.4g} {unit or 'tokens'}", "muted"),
    ]
    for arm, x, score in points:
        cx, cy = 60 + x / top * PLOT, height - score * (height - 20)
        kind = "dot baseline" if arm.is_baseline else "dot"
        title = f"{arm.label}: {two_decimals(score)} for {x:,.4g} {unit or 'tokens'} per trial"
        marks.append(f'<circle class="{kind}" cx="{cx:.1f}" cy="{cy:.1f}" r="6">{_title(title)}</circle>')
        marks.append(_text(cx + 10, cy, _short(_arm_name(report.arms, arm)), "name"))
    name = f"Mean score against {'tokens' if unit is None else 'cost'} per trial"
    return _svg(name, 60 + PLOT + LABEL, height + 30, marks)


def _unit(arms: Iterable[Arm]) -> str | None:
    units = {unit for arm in arms for unit, amount in arm.costs.items() if amount}
    return min(units) if len(units) == 1 else None


def _arm_name(arms: Sequence[Arm], arm: Arm) -> str:
    return f"{arm.label} · {arm.model}" if len({item.model for item in arms}) > 1 else arm.label


def _x(share: float) -> float:
    return LABEL + 8 + share * (PLOT - 16)


def _grid(rows: int, low: float, high: float) -> list[str]:
    marks = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = _x(share)
        marks.append(_line(x, 0, x, rows * ROW, "grid"))
        marks.append(_text(x - 10, rows * ROW + 14, f"{low + share * (high - low):g}", "muted"))
    return marks


def _chart(name: str, rows: int, marks: Sequence[str]) -> str:
    return _svg(name, LABEL + PLOT + RIGHT, rows * ROW + 24, marks)


def _svg(name: str, width: float, height: float, marks: Sequence[str]) -> str:
    head = f'<svg role="img" aria-label="{escape(name)}" viewBox="0 0 {width:.0f} {height:.0f}">'
    return f"<figure><figcaption>{escape(name)}</figcaption>{head}{''.join(marks)}</svg></figure>"


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _label(text: str, y: float) -> str:
    shown = _short(text)
    return f'<text class="name" x="{LABEL - 8}" y="{y + 4:.1f}" text-anchor="end">{_title(text)}{escape(shown)}</text>'


def _short(text: str) -> str:
    """As much as fits beside the plot; letters of some alphabets are twice as wide."""
    return cut_to_cells(text, MOST_CELLS)


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y + 4:.1f}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
