"""The directory of a run and the files below it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from vally.errors import VallyError
from vally.model.jsonio import canonical_json, encode_document, timestamp
from vally.model.results import MAIN_VARIANT, TrialResult
from vally.run.atomic import atomic_write, sync_directory
from vally.run.lock import RunLock
from vally.run.results_file import RESULTS_NAME

MANIFEST_NAME = "run-manifest.json"
PRIVATE = 0o600


class RunDirectory:
    """One run directory; `path` exists. `segments` are the parts of a trial's path: eval, stimulus, model, trial."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, output_dir: Path, started_at: datetime, display: Callable[[Path], str] = str) -> RunDirectory:
        """Make a new directory named by the start time, with `-2`, `-3`, ... when that is taken.

        Raises `VallyError` when it cannot be made; `display` says how that names a path.
        """
        name = directory_name(started_at)
        number = 1
        try:
            output_dir.mkdir(parents=True, exist_ok=True)
            while True:
                path = output_dir / (name if number == 1 else f"{name}-{number}")
                try:
                    path.mkdir()
                except FileExistsError:
                    number += 1
                    continue
                sync_directory(output_dir)
                return cls(path)
        except OSError as error:
            raise _not_created(display(output_dir), error.strerror or str(error)) from error

    @classmethod
    def named(cls, output_dir: Path, name: str, display: Callable[[Path], str] = str) -> RunDirectory:
        """Make a directory of a given name, which may be nested; one that holds anything is an error.

        Raises `VallyError`.
        """
        directory = cls(output_dir / name)
        try:
            directory.make()
            taken = any(directory.path.iterdir())
        except OSError as error:
            raise _not_created(display(directory.path), error.strerror or str(error)) from error
        if taken:
            raise _not_created(
                display(directory.path), "it exists and is not empty", hint="remove it, or choose another --output-dir"
            )
        sync_directory(directory.path.parent)
        return directory

    def make(self) -> None:
        """Make the directory unless it exists. Raises `OSError`."""
        self.path.mkdir(parents=True, exist_ok=True)

    @property
    def results_path(self) -> Path:
        """Path of `results.jsonl`."""
        return self.path / RESULTS_NAME

    @property
    def manifest_path(self) -> Path:
        """Path of `run-manifest.json`."""
        return self.path / MANIFEST_NAME

    def lock(self, display: Callable[[Path], str] = str) -> RunLock:
        """The lock of this directory, not yet acquired."""
        return RunLock(self.path, display)

    def trial_dir(self, segments: Sequence[str]) -> Path:
        """Directory of a trial; it may not exist yet."""
        return self.path.joinpath(*segments)

    def make_trial_dir(self, segments: Sequence[str]) -> Path:
        """The directory of a trial, made when it does not exist."""
        return self._made_trial_dir(segments)[0]

    def _made_trial_dir(self, segments: Sequence[str]) -> tuple[Path, bool]:
        directory = self.trial_dir(segments)
        try:
            directory.mkdir()
        except FileExistsError:
            return directory, False
        except FileNotFoundError:
            directory.mkdir(parents=True, exist_ok=True)
        return directory, True

    def sidecar(self, segments: Sequence[str], name: str) -> str:
        """How a record names a file of a trial: relative to the directory of `results.jsonl`, POSIX."""
        return "/".join((*segments, name))

    def write_trial_file(self, segments: Sequence[str], name: str, data: bytes | str) -> Path:
        """Write a file of a trial atomically."""
        directory, is_new = self._made_trial_dir(segments)
        path = directory / name
        atomic_write(path, data, is_first=is_new)
        return path

    def write_metadata(self, segments: Sequence[str], result: TrialResult) -> Path:
        """Write the `metadata.json` of a trial."""
        return self.write_trial_file(segments, "metadata.json", encode_document(trial_metadata(result)))

    def session_log(self, segments: Sequence[str]) -> Path:
        """Create the empty `events.jsonl` of a trial, readable by its owner only, and return its path."""
        path = self.make_trial_dir(segments) / "events.jsonl"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE))
        path.chmod(PRIVATE)
        return path

    def write_manifest(self, facts: ManifestFacts) -> None:
        """Write `run-manifest.json`, readable by its owner only."""
        atomic_write(self.manifest_path, encode_document(run_manifest(facts)), mode=PRIVATE)


def _not_created(where: str, reason: str, hint: str = "choose a writable directory with --output-dir") -> VallyError:
    return VallyError(
        f"cannot create a run directory: {reason}",
        code="output-dir",
        where=where,
        hints=(hint,),
    )


def directory_name(started_at: datetime) -> str:
    """Start time as a file name: `2026-07-24T01-00-00-000Z`."""
    return timestamp(started_at).replace(":", "-").replace(".", "-")


def trial_metadata(result: TrialResult) -> dict[str, Any]:
    """Content of `metadata.json`; names are the originals."""
    return {
        "variant": result.variant,
        "stimulusName": result.stimulus,
        "evalName": result.eval_name,
        "evalFilePath": result.eval_file_path,
        "model": result.model,
        "trialIndex": result.trial_index,
        "status": result.status,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSpec:
    """A spec of a run: `sha256` covers it after placeholders are filled, `defaults` are the resolved ones.

    `threshold` and `pass_rate` are those by which the run judges it.
    """

    path: str
    name: str
    sha256: str
    variant: str = MAIN_VARIANT
    defaults: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None
    pass_rate: float | None = None

    def record(self) -> dict[str, Any]:
        """The spec as the manifest has it; the variant only where a run has several."""
        variant = {} if self.variant == MAIN_VARIANT else {"variant": self.variant}
        limits = {"threshold": self.threshold, "passRate": self.pass_rate}
        scoring = {name: value for name, value in limits.items() if value is not None}
        return {
            "path": self.path,
            "name": self.name,
            **variant,
            "sha256": self.sha256,
            "defaults": dict(self.defaults),
            **({"scoring": scoring} if scoring else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFacts:
    """What `run-manifest.json` records. `params` and `backend_args` are given in clear and stored as hashes.

    `backend` is what the backend itself says of what it runs trials with. `skills` maps directories of skills to the
    SHA-256 of their SKILL.md.
    """

    run_id: str
    tool_version: str
    started_at: str
    kind: str = "eval"
    project_file: str | None = None
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    plugins: Sequence[Any] = ()
    specs: Sequence[ManifestSpec] = ()
    skills: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    backend_args: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    backend: Mapping[str, str] = field(default_factory=dict)
    items: Sequence[str] = ()

    def skill_records(self) -> list[dict[str, str]]:
        """The skills as the manifest has them."""
        return [{"path": path, "sha256": digest} for path, digest in self.skills.items()]


def run_manifest(facts: ManifestFacts) -> dict[str, Any]:
    """Content of `run-manifest.json`."""
    return {
        "type": "run-manifest",
        "version": 1,
        "runId": facts.run_id,
        "kind": facts.kind,
        "toolVersion": facts.tool_version,
        "startedAt": facts.started_at,
        "projectFile": facts.project_file,
        "seed": facts.seed,
        "options": dict(facts.options),
        "plugins": list(facts.plugins),
        "specs": [spec.record() for spec in facts.specs],
        "skills": facts.skill_records(),
        "params": hash_values(facts.params),
        "backendArgs": hash_values(facts.backend_args),
        **({"backend": dict(facts.backend)} if facts.backend else {}),
        "items": list(facts.items),
    }


def hash_values(values: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    """SHA-256 (hex) of each value; of a list that of its canonical JSON."""
    return {name: _sha256(value if isinstance(value, str) else canonical_json(value)) for name, value in values.items()}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
