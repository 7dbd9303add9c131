"""Writing the reports into the run directory."""

from __future__ import annotations

from pathlib import Path

from vally_command_experiment.markdown import markdown_report
from vally_command_experiment.report_data import Report
from vally_command_experiment.writing import write_text


def write_reports(directory: Path, report: Report, *, html: bool) -> dict[str, Path]:
    """Write `report.md` and, if wanted, `report.html`; returns their paths by label."""
    artifacts = {"Report": directory / "report.md"}
    write_text(artifacts["Report"], markdown_report(report))
    if html:
        from vally_command_experiment.html import html_report

        artifacts["HTML report"] = directory / "report.html"
        write_text(artifacts["HTML report"], html_report(report))
    return artifacts
