"""The files of trials beside the records: artifacts, and diffs that are too long for a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from vally_command_results.importing.finding import document
from vally_command_results.recorded import items, mapping

TRIAL_DEPTH = "*/*/*/*"
ARTIFACTS = "artifacts"
Key = tuple[str, str, str, int]


class SideFiles:
    """What lies in the trial directories of a run; names of directories are never interpreted, `metadata.json` is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._artifacts: dict[Key, str] | None = None
        self.names: dict[str, None] = {}
        """Side files that records refer to, relative to the run directory."""

    def artifacts_of(self, outcome: Mapping[str, Any], eval_file: str | None) -> str | None:
        """The directory with the artifacts of a trial, relative to that of the run."""
        if self._artifacts is None:
            self._artifacts = dict(self._found())
        key = (eval_file or "", outcome["stimulus"], outcome["model"] or "", outcome["trial_index"])
        return self._artifacts.get(key)

    def _found(self) -> list[tuple[Key, str]]:
        found = []
        for path in self._directory.glob(f"{TRIAL_DEPTH}/{ARTIFACTS}"):
            if path.is_dir() and not path.is_symlink():
                facts = document(path.parent / "metadata.json")
                file, stimulus, model = (str(facts.get(key, "")) for key in ("evalFilePath", "stimulusName", "model"))
                index = facts.get("trialIndex")
                if isinstance(index, int):
                    found.append(((file, stimulus, model, index), path.relative_to(self._directory).as_posix()))
        return found

    def note(self, record: Mapping[str, Any]) -> None:
        """Remember the side files that a record names; a path that leaves the directory is not followed."""
        trajectory = mapping(record.get("trajectory"))
        for part in (trajectory, *map(mapping, items(trajectory.get("turnDiffs")))):
            name = part.get("diffPath")
            if isinstance(name, str) and _is_inside(name):
                self.names[name] = None


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name and "\0" not in name
