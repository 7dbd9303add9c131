"""The one object that `--output json` prints at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vally.run.engine import RunOutcome
    from vally.run.run_output import RunOutput

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


def run_object(outcome: RunOutcome, exit_code: int, directory: RunOutput) -> dict[str, Any]:
    """Build the object: the run summary, and per eval the figures of each stimulus."""
    from vally.model.trajectory import dump_record

    summary = dump_record(outcome.summary)
    return {
        "type": "eval-run",
        "version": 1,
        "runId": summary["runId"],
        "runDir": directory.display,
        "exitCode": exit_code,
        **{key: summary.get(key) for key in _COPIED if key != "runId"},
        "evals": [_eval(item) for item in summary["evals"]],
        "artifacts": {label.lower(): directory.display_of(path) for label, path in outcome.artifacts.items()},
    }


def _eval(item: dict[str, Any]) -> dict[str, Any]:
    stimuli = (item.get("stats") or {}).get("stimuli") or []
    return {**item, "stimuli": [{key: stimulus.get(key) for key in _STIMULUS_KEYS} for stimulus in stimuli]}
