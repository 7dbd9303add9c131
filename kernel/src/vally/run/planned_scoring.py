"""What scores a run was to reach, by its manifest: a run that goes on or was killed has no summary to tell it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vally.model.jsonio import read_json
from vally.model.results import MAIN_VARIANT
from vally.run.run_dir import MANIFEST_NAME


@dataclass(frozen=True, slots=True)
class PlannedScoring:
    """Threshold and share of passing trials that an eval was to reach, each from 0 to 1; None where nothing was set."""

    threshold: float | None = None
    pass_rate: float | None = None


def planned_scoring(results: Path) -> dict[tuple[str, str], PlannedScoring]:
    """Of the run with that results file, by eval file and variant; empty when no manifest tells it."""
    own = read_json(results.parent / MANIFEST_NAME)
    # The files of an experiment lie one level below its manifest.
    above = {} if own else read_json(results.parent.parent / MANIFEST_NAME)
    specs = own.get("specs") or (above.get("specs") if above.get("kind") == "experiment" else None)
    found = {}
    for spec in specs if isinstance(specs, list) else ():
        if isinstance(spec, dict) and isinstance(scoring := spec.get("scoring"), dict):
            key = str(spec.get("path")), str(spec.get("variant") or MAIN_VARIANT)
            found[key] = PlannedScoring(_share(scoring.get("threshold")), _share(scoring.get("passRate")))
    return found


def _share(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
