"""The one trajectory that is meant: of a run, or of the session log of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    TrialChoice,
    VallyError,
    find_project,
    find_run,
    import_session,
    load_whole,
    print_warning,
    read_lines,
    read_trials,
)

if TYPE_CHECKING:
    from vally import CliContext, StoredTrials, Trajectory, TrialEntry

SESSION_LOG = "events.jsonl"
_MOST_NAMED = 20


def find_trajectory(context: CliContext, word: str, options: Mapping[str, Any]) -> Trajectory:
    """Find and read it; raises `VallyError` when there is none or more than one is meant."""
    path = context.cwd / word
    if _is_session(path):
        return _session(path, word)
    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    run = find_run(word, context, project)
    choice = TrialChoice(**{key: options[key] for key in ("stimulus", "trial", "model", "variant")})
    parts = [_read(part.results, word) for part in run.parts]
    found = [(trials, entry) for trials in parts for entry in choice.of(trials)]
    if not found:
        raise choice.nothing(parts)
    if len(found) > 1:
        raise _several([entry for _, entry in found])
    trials, entry = found[0]
    _, record = next(iter(trials.records([entry])))
    result, warning = load_whole(record, entry, trials.path.parent)
    if warning:
        print_warning(warning)
    if result is None or result.trajectory is None:
        raise VallyError(f"stimulus '{entry.stimulus}', trial {entry.trial_index}: no trajectory was recorded")
    return result.trajectory


def _read(path: Path, word: str) -> StoredTrials:
    try:
        return read_trials(path)
    except OSError as error:
        raise VallyError(f"cannot be read: {error.strerror or error}", where=word) from error


def _is_session(path: Path) -> bool:
    """Whether a path is a session log, or the directory that holds one and no results."""
    if path.is_dir():
        return (path / SESSION_LOG).is_file() and not (path / "results.jsonl").exists()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = next((line.record for line in read_lines(file, [])), {})
    kind = first.get("type")
    return isinstance(kind, str) and "." in kind


def _session(path: Path, word: str) -> Trajectory:
    try:
        imported = import_session(path)
    except OSError as error:
        raise VallyError(f"cannot be read: {error.strerror or error}", where=word) from error
    for warning in imported.warnings:
        print_warning(warning)
    return imported.trajectory


def _several(entries: list[TrialEntry]) -> VallyError:
    hints = [
        f"--stimulus '{entry.stimulus}' --model '{entry.model}' --variant '{entry.variant}'"
        for entry in entries[:_MOST_NAMED]
    ]
    more = [f"and {len(entries) - _MOST_NAMED} more"] if len(entries) > _MOST_NAMED else []
    return VallyError(
        f"{len(entries)} trajectories match; select one of them", code="several-trials", hints=hints + more
    )
