"""Finding what can be imported below a directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vally import parse_json

RESULTS_NAME = "results.jsonl"
PLAN_NAME = "plan-snapshot.json"
MANIFEST_NAME = "run-manifest.json"
EXPERIMENT_MANIFESTS = ("shard-manifest.json", "experiment-manifest.json")
SUMMARY_NAME = "experiment-summary.json"
PROVENANCE_NAME = "run-summary.jsonl"
DEPTH = 6
COMPARISON_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ExperimentFiles:
    """What lies beside the variants of an experiment; empty for other runs."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def head(self) -> Mapping[str, Any]:
        """Run id, name, variants and baseline of the experiment."""
        head = self.manifest.get("experiment")
        return head if isinstance(head, Mapping) else {}

    @property
    def shard(self) -> str:
        """`i/n` of a shard, empty for a whole run."""
        shard = self.manifest.get("shard")
        if not isinstance(shard, Mapping) or shard.get("count") in (None, 1):
            return ""
        return f"{shard.get('index')}/{shard['count']}"


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A results file; `source` is how messages and the store name its directory."""

    path: Path
    source: str
    experiment: ExperimentFiles
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundComparisons:
    """A file with comparison records."""

    path: Path
    source: str


Found = FoundRun | FoundComparisons


def find_sources(root: Path, name: str) -> Iterator[Found]:
    """What lies below a directory, in the order of its names; links are not followed."""
    yield from _walk(root, name.rstrip("/") or ".", DEPTH, ExperimentFiles())


def _walk(directory: Path, name: str, depth: int, above: ExperimentFiles) -> Iterator[Found]:
    results = directory / RESULTS_NAME
    if _is_file(results):
        # A variant directory may be named itself; its experiment lies above it all the same.
        experiment = above if above.head or above.plan else experiment_files(directory.parent)
        manifest = document(directory / MANIFEST_NAME) or document(directory.parent / MANIFEST_NAME)
        yield FoundRun(results, name, experiment, manifest)
        yield from _comparisons(directory, name)
        return
    yield from _comparisons(directory, name)
    if depth == 0:
        return
    here = experiment_files(directory)
    for entry in _directories(directory):
        yield from _walk(entry, f"{name}/{entry.name}" if name != "." else entry.name, depth - 1, here)


def _directories(directory: Path) -> list[Path]:
    try:
        entries = sorted(directory.iterdir(), key=lambda path: path.name)
        return [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        # What may not be looked at hides no other run.
        return False


def _comparisons(directory: Path, name: str) -> Iterator[FoundComparisons]:
    for path in sorted(directory.glob("*.jsonl")):
        if path.name != RESULTS_NAME and _is_file(path) and _starts_with_comparison(path):
            yield FoundComparisons(path, f"{name}/{path.name}")


def _starts_with_comparison(path: Path) -> bool:
    try:
        if path.stat().st_size > COMPARISON_BYTES:
            return False
        with path.open("rb") as file:
            record = parse_json(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("type") == "comparison"


def experiment_files(directory: Path) -> ExperimentFiles:
    """What a directory says about an experiment."""
    manifests = (document(directory / name) for name in EXPERIMENT_MANIFESTS)
    return ExperimentFiles(
        plan=document(directory / PLAN_NAME),
        manifest=next((found for found in manifests if found), {}),
    )


def document(path: Path) -> Mapping[str, Any]:
    """A JSON object of a file; empty when there is none."""
    try:
        value = parse_json(path.read_bytes()) if _is_file(path) else None
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, Mapping) else {}
