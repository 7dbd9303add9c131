"""Parts of charts: inline SVG whose colours are classes of the style sheet, for light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from vally_command_results.server.pages.text import name

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its title, what it shows in a sentence, and the same values as a table."""

    svg: Markup
    title: str
    description: str
    columns: Cells
    rows: tuple[Cells, ...]


def svg(
    title: str,
    description: str,
    width: float,
    height: float,
    marks: Iterable[str],
    kind: str = "chart",
    *,
    stretch: bool = False,
) -> Markup:
    """A picture with its title and description; `marks` are escaped already. `stretch` lets it lose its proportions."""
    further = ' preserveAspectRatio="none"' if stretch else ""
    head = f'<svg class="{kind}" role="img" viewBox="0 0 {width:g} {height:g}"{further}>'
    words = f"<title>{escape(title)}</title>"
    if description:
        words += f"<desc>{escape(description)}</desc>"
    return Markup(f"{head}{words}{''.join(marks)}</svg>")


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    """A text with its baseline at `y`."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def label(x: float, y: float, words: str, kind: str, anchor: str = "start", limit: int = 28) -> str:
    """A name, cut to what fits; all of it shows on hover."""
    shown = escape(name(words, limit))
    whole = f"<title>{escape(name(words))}</title>"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{whole}{shown}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def box(x: float, y: float, width: float, height: float, kind: str, words: str = "") -> str:
    """A rectangle; `words` show on hover."""
    head = f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f"{head}><title>{escape(words)}</title></rect>" if words else f"{head}/>"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values from `low` to `high`, about `count` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def bar(share: float | None, words: str) -> Markup:
    """A small horizontal bar for a share of 1; empty without one."""
    if share is None:
        return Markup("")
    width = 100 * min(1.0, max(0.0, share))
    marks = [box(0, 0, 100, 8, "track"), box(0, 0, width, 8, "fill")]
    return svg(words, "", 100, 8, marks, "bar", stretch=True)


def sparkline(shares: Sequence[float], words: str) -> Markup:
    """Shares of 1 over time, the newest at the right end with a dot."""
    if len(shares) < 2:
        return Markup("")
    points = [(4 + 92 * place / (len(shares) - 1), 22 - 18 * value) for place, value in enumerate(shares)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    marks = [
        f'<polyline class="spark" points="{path}"/>',
        f'<circle class="spark-end" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>',
    ]
    return svg(words, "", 100, 26, marks, "sparkline")
