"""Whether a run of an experiment can be continued with the file as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vally import VallyError
from vally_command_experiment.documents import SHARD_MANIFEST_NAME
from vally_command_experiment.planning import Experiment
from vally_command_experiment.shard_shapes import read_document


def check_unchanged(run_dir: Path, experiment: Experiment) -> None:
    """Raise `VallyError` when the file of the experiment is another now: its baseline and names are in every record."""
    try:
        stored = read_document(run_dir / SHARD_MANIFEST_NAME) or {}
    except ValueError:
        return  # It is written anew; what it says is said by the records too.
    head = stored.get("experiment")
    before = head.get("experimentHash") if isinstance(head, Mapping) else None
    if before not in (None, experiment.config.experiment_hash):
        raise VallyError(
            "1 file changed since the run began",
            where="--resume",
            hints=[
                f"experiment {experiment.config.display_path}",
                "start a new run, or grade the records of this one with 'vally grade'",
            ],
        )
