"""Parameters of pages: those of the API and some that only choose what is shown."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vally_command_results.server import params


class RunsPage(params.Runs):
    """The list of runs; `open` names experiments whose variants are listed."""

    limit: Annotated[int, Field(ge=1, le=params.MAX_LIMIT)] = 50
    open: params.Texts = ()


class OverviewPage(params.Matrix):
    """One run: its matrix, and the metric and grouping of its histogram."""

    chart: params.Distributed = "duration_ms"
    by: params.DistributedBy = "model"


class OutcomesPage(params.Outcomes):
    """A list of outcomes, as a page or as rows for spreadsheets."""

    limit: Annotated[int, Field(ge=1, le=params.MAX_LIMIT)] = 50
    format: Literal["html", "csv"] = "html"


class TrialPage(params.Parameters):
    """Which part of the timeline of a trial."""

    show: Literal["", "tools", "messages", "errors", "other"] = ""
    find: params.Text = ""
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


class DiffPage(params.DiffTurn):
    """Which diff; `file` shows one file (from 0) whole, from line `start` on."""

    whitespace: Literal["", "ignore"] = ""
    file: Annotated[int | None, Field(ge=0)] = None
    start: Annotated[int, Field(ge=0)] = 0


class TextPart(params.Parameters):
    """Which long text of a trial."""

    part: Literal["prompt", "output", "error", "event"]
    event: Annotated[int, Field(ge=0)] = 0


class ComparePage(params.Compare):
    """Which runs; with `oldest_first` they are put in order of time."""

    runs: params.Texts = ()
    oldest_first: bool = False


class SideBySide(params.Parameters):
    """Two outcomes."""

    left: params.Text
    right: params.Text
