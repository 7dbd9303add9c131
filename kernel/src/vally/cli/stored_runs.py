"""Which run a word means: a directory, a results file, an id, or the newest one."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import VallyError
from vally.model.jsonio import read_json
from vally.run.results_file import RESULTS_NAME
from vally.run.run_dir import MANIFEST_NAME
from vally.spec.paths import is_file

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.model.evalspec import Project

EXPERIMENT_FILES = ("experiment-manifest.json", "shard-manifest.json", "experiment-summary.json", "plan-snapshot.json")
OUTPUT_DIRS = ("vally-results", "vally-experiment-results")
LATEST = "latest"
_STARTED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d{3})Z(?:-(\d+))?")
_MOST_HINTS = 5
_UNKNOWN_START = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RunPart:
    """One results file of a run; `label` is the variant's directory in an experiment, else None."""

    results: Path
    label: str | None = None


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run on disk: its directory, and its results files in order. `is_file` when a file was named."""

    path: Path
    parts: tuple[RunPart, ...]
    is_experiment: bool = False
    is_file: bool = False

    def manifest(self) -> dict[str, Any]:
        """Its `run-manifest.json`; empty when there is none."""
        return read_json(self.path / MANIFEST_NAME)


def run_at(path: Path) -> StoredRun | None:
    """The run in a directory; None when it holds none."""
    if any(is_file(path / name) for name in EXPERIMENT_FILES):
        return StoredRun(path, tuple(_variants(path)), is_experiment=True)
    if is_file(path / RESULTS_NAME):
        return StoredRun(path, (RunPart(path / RESULTS_NAME),))
    return None


def _variants(path: Path) -> Iterator[RunPart]:
    names = [entry.name for entry in _directories(path) if is_file(path / entry.name / RESULTS_NAME)]
    manifest = next((found for name in EXPERIMENT_FILES if (found := read_json(path / name))), {})
    planned = manifest.get("experiment")
    order = planned.get("variantNames") if isinstance(planned, dict) else None
    place = {_segment(name): index for index, name in enumerate(order if isinstance(order, list) else ())}
    for name in sorted(names, key=lambda name: (place.get(name, len(place)), name)):
        yield RunPart(path / name / RESULTS_NAME, name)


def _segment(name: object) -> str:
    from vally.run.segments import segment

    return segment(str(name))


def _directories(path: Path) -> list[os.DirEntry[str]]:
    """Directories below a directory that are no links and not hidden; none when it cannot be read."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        return [entry for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")]
    return []


def find_runs(root: Path) -> list[StoredRun]:
    """All runs at and below a directory, the newest first."""
    found: list[StoredRun] = []
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        run = run_at(directory)
        if run is not None:
            found.append(run)
        else:
            waiting += [directory / entry.name for entry in _directories(directory)]
    return newest_first(found)


def newest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Runs by their start; those of one millisecond by the number that their directories got."""
    return sorted(runs, key=_age, reverse=True)


def _age(run: StoredRun) -> tuple[datetime, int, str]:
    named = _STARTED.fullmatch(run.path.name)
    return started_at(run) or _UNKNOWN_START, int(named[5] or 1) if named else 0, str(run.path)


def started_at(run: StoredRun) -> datetime | None:
    """When a run started: by the name of its directory, else its manifest, else the time of its file."""
    from vally.model.jsonio import parse_timestamp

    named = _STARTED.fullmatch(run.path.name)
    # Manifests name every item of a run, so they can be long.
    if named and (moment := parse_timestamp(f"{named[1]}:{named[2]}:{named[3]}.{named[4]}Z")):
        return moment
    moment = parse_timestamp(run.manifest().get("startedAt"))
    if moment is not None:
        return moment
    for part in run.parts:
        with contextlib.suppress(OSError):
            return datetime.fromtimestamp(part.results.stat().st_mtime, UTC)
    return None


def output_dirs(context: CliContext, project: Project) -> list[Path]:
    """Where runs are written that did not say where: `paths.results` of the project, else the default directories."""
    evals, experiments = (context.cwd / name for name in OUTPUT_DIRS)
    # What a project says about results is about evals alone.
    return [project.root / project.results if project.results else evals, experiments]


def run_place(word: str, context: CliContext, *, where: str, experiment: bool | None = None) -> str:
    """The path that a word means: its own, else that of the run with this name or id, and for `latest` the newest.

    With `experiment` the newest is one that is an experiment, or is none. Raises `VallyError`, which says `where`.
    """
    if word != LATEST and os.path.lexists(context.cwd / word):
        return word
    from vally.spec import find_project

    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    try:
        return _shown(find_run(word, context, project, experiment=experiment).path, context.cwd)
    except VallyError as error:
        raise VallyError(error.message, where=where, code=error.code, hints=error.hints) from None


def find_run(word: str | None, context: CliContext, project: Project, *, experiment: bool | None = None) -> StoredRun:
    """The run that a word means; without a word, and for `latest`, the newest one. Raises `VallyError`.

    With `experiment` the newest is one that is an experiment, or is none.
    """
    parents = output_dirs(context, project)
    if word is None or word == LATEST:
        return _newest(parents, context, experiment)
    path = (context.cwd / word).resolve()
    if path.is_dir():
        run = run_at(path)
        if run is None:
            raise _no_run(word, path, context.cwd)
        return run
    if path.is_file():
        return StoredRun(path.parent, (RunPart(path),), is_file=True)
    return _by_id(word, parents, context)


def _newest(parents: Sequence[Path], context: CliContext, experiment: bool | None) -> StoredRun:
    for run in _all_runs(parents):
        if experiment in (None, run.is_experiment):
            return run
    shown = ", ".join(_shown(parent, context.cwd) for parent in parents)
    what, command = ("experiments", "experiment run") if experiment else ("runs", "eval")
    hint = f"name a run directory, or start a run with 'vally {command}'"
    raise VallyError(f"no {what} in {shown}", code="no-runs", hints=(hint,))


def _all_runs(parents: Sequence[Path]) -> list[StoredRun]:
    return newest_first(run for parent in parents for run in find_runs(parent))


def _by_id(word: str, parents: Sequence[Path], context: CliContext) -> StoredRun:
    runs = _all_runs(parents)
    for run in runs:
        if word in (run.path.name, run_id(run)):
            return run
    from vally.text.suggest import did_you_mean

    known = ((run.path.name, run_id(run), _shown(run.path, context.cwd)) for run in runs)
    names = [name for named in known for name in named if name]
    hints = [did_you_mean(word, [LATEST, *names]), _recent(runs, context.cwd)]
    raise VallyError(
        f"no run directory, results file or run id '{word}'", code="no-run", hints=[hint for hint in hints if hint]
    )


def run_id(run: StoredRun) -> str | None:
    """The id of a run by its manifests, else by the first line of its results."""
    for name in (MANIFEST_NAME, *EXPERIMENT_FILES):
        document = read_json(run.path / name)
        for holder in (document, document.get("experiment")):
            found = holder.get("runId") if isinstance(holder, dict) else None
            if isinstance(found, str) and found:
                return found
    for part in run.parts:
        found = _first_record(part.results).get("runId")
        if isinstance(found, str) and found:
            return found
    return None


def _first_record(path: Path) -> dict[str, Any]:
    from vally.run.results_file import read_lines

    with contextlib.suppress(OSError), path.open("rb") as file:
        return next((line.record for line in read_lines(file, [])), {})
    return {}


def _no_run(word: str, path: Path, cwd: Path) -> VallyError:
    below = find_runs(path)
    hints = [_recent(below, cwd)] if below else ["a run directory holds a file results.jsonl"]
    return VallyError(f"'{word}' is no run directory", code="no-run", hints=[hint for hint in hints if hint])


def _recent(runs: Sequence[StoredRun], base: Path) -> str | None:
    if not runs:
        return None
    shown = [_shown(run.path, base) for run in runs[:_MOST_HINTS]]
    return f"runs: {', '.join(shown)}" + (", …" if len(runs) > _MOST_HINTS else "")


def _shown(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path, base)).as_posix()
