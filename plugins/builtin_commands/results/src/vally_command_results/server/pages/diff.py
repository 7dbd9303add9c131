"""The diff of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request

from vally_command_results.query.errors import not_found
from vally_command_results.query.outcomes import outcome_detail
from vally_command_results.query.runs import require_run
from vally_command_results.query.trajectories import diff_document
from vally_command_results.server.pages.diffs import PAGE_LINES, file_diffs, one_file
from vally_command_results.server.pages.page_params import DiffPage
from vally_command_results.server.pages.reading import read, with_parameters
from vally_command_results.server.site import Site


def diff_page(connection: Connection, request: Request, _: Site) -> tuple[str, Mapping[str, Any]]:
    """`/outcomes/<id>/diff`."""
    outcome_id = request.path_params["outcome_id"]
    trial = outcome_detail(connection, outcome_id)
    chosen = read(DiffPage, request)
    diff = diff_document(connection, outcome_id, chosen.turn)
    ignore = chosen.whitespace == "ignore"
    single = None
    if chosen.file is not None:
        single = one_file(diff["text"], chosen.file, chosen.start, ignore_whitespace=ignore)
        if single is None:
            raise not_found(f"the diff has no file number {chosen.file}")
    end = chosen.start + PAGE_LINES
    return "diff.html", {
        "title": f"Diff of {trial['stimulus']}, trial {trial['trialIndex'] + 1}",
        "section": "runs",
        "run": require_run(connection, trial["runId"]),
        "trial": trial,
        "diff": diff,
        "files": [single] if single else file_diffs(diff["text"], ignore_whitespace=ignore),
        "single": single,
        "chosen": chosen,
        "at": lambda **changed: with_parameters(request, **changed),
        "more": end if single and end < single.count else None,
        "total": {key: sum(item[key] for item in diff["files"]) for key in ("additions", "deletions")},
    }
