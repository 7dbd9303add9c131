"""The one object that `--output json` prints for a run or its plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally.cli.machine_output import write_machine_output
from vally.model.jsonio import plain_value

if TYPE_CHECKING:
    from vally.model.results import RunSummary
    from vally.run.run_output import RunOutput
    from vally.run.run_settings import RunOutcome

_COPIED = ("runId", "passed", "partial", "stopReason", "hadExecutionErrors", "durationMs", "totals")
_STIMULUS_KEYS = (
    "name",
    "verdict",
    "score",
    "trials",
    "passed",
    "passRate",
    "passAtK",
    "passToTheK",
    "flaky",
    "flakinessPercent",
    "errors",
)


def print_object(document: object) -> None:
    """Print it on one line; numbers are written as in records."""
    write_machine_output(json.dumps(plain_value(document).value, ensure_ascii=False) + "\n")


def run_object(outcome: RunOutcome, exit_code: int, directory: RunOutput) -> dict[str, Any]:
    """Build the object: the run summary, and per eval the figures of each stimulus."""
    artifacts = {label.lower(): directory.display_of(path) for label, path in outcome.artifacts.items()}
    manifest = directory.directory.manifest_path
    if manifest.is_file():
        artifacts["manifest"] = directory.display_of(manifest)
    return summary_object(outcome.summary, exit_code, kind="eval-run", run_dir=directory.display, artifacts=artifacts)


def nothing_object(run_id: str) -> dict[str, Any]:
    """The object of a run that had nothing to do and has no directory."""
    from vally.model.jsonio import timestamp
    from vally.run.summary import RunTally

    summary = RunTally(()).run_summary(run_id=run_id, started_at=timestamp())
    return {**summary_object(summary, 0, kind="eval-run", artifacts={}), "runDir": None}


def summary_object(
    summary: RunSummary, exit_code: int, *, kind: str, run_dir: str | None = None, artifacts: Mapping[str, str]
) -> dict[str, Any]:
    """The object of a summary: `kind` is its type; `runDir` is left out of one that has none."""
    from vally.model.trajectory import dump_record

    record = dump_record(summary)
    return {
        "type": kind,
        "version": 1,
        "runId": record["runId"],
        **({} if run_dir is None else {"runDir": run_dir}),
        "exitCode": exit_code,
        **{key: record.get(key) for key in _COPIED if key != "runId"},
        "evals": [_eval(item) for item in record["evals"]],
        "artifacts": dict(artifacts),
    }


def _eval(item: dict[str, Any]) -> dict[str, Any]:
    stimuli = (item.get("stats") or {}).get("stimuli") or []
    return {**item, "stimuli": [{key: stimulus.get(key) for key in _STIMULUS_KEYS} for stimulus in stimuli]}
