"""`report.html`: one file that makes no request."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from vally import __version__, fixed, percent, plural, printable, report_duration, signed, two_decimals
from vally_command_experiment.charts import cost_chart, delta_chart, score_chart
from vally_command_experiment.markdown import comparison_words
from vally_command_experiment.report_data import Report


def html_report(report: Report) -> str:
    """The whole page; text of others is escaped and loses its control characters."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    words = {"clean": printable, "duration": report_duration, "plural": plural, "words": comparison_words}
    numbers = {
        "score": two_decimals,
        "percent": percent,
        "signed": partial(signed, places=2),
        "tenths": partial(fixed, places=1),
        "whole": lambda number: f"{int(fixed(number, 0)):,}",
    }
    environment.filters |= words | numbers
    template = environment.from_string(files(__package__).joinpath("report.html.jinja").read_text(encoding="utf-8"))
    return template.render(report=report, document=report.document, charts=_charts(report), version=__version__)


def _charts(report: Report) -> list[str]:
    charts = [score_chart(report.arms)]
    baseline = report.baseline_arm
    if baseline is not None:
        places = [place for place in range(len(report.arms)) if place != baseline]
        charts += [delta_chart(report, place, baseline) for place in places]
    return [chart for chart in (*charts, cost_chart(report)) if chart]
