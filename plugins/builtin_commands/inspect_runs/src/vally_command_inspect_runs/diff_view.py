"""The recorded diff of a workspace in colour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vally import one_line, plural, printable, recorded_diff, recorded_turn_diff

if TYPE_CHECKING:
    from vally import Style, Trajectory


def diff_lines(trajectory: Trajectory, run_dir: Path, style: Style) -> Iterator[str]:
    """The diff of the run; without one those of its turns, else the reason why there is none."""
    text, problem = recorded_diff(trajectory, run_dir)
    if text is not None:
        yield from _colored(text, style) if text else ["no change in the workspace"]
        return
    turns = trajectory.turn_diffs or []
    if not turns:
        yield f"no diff: {one_line(problem or 'it was not recorded')}"
    for entry in turns:
        yield style.paint(f"── turn {entry.turn + 1} ──", "dim")
        part, reason = recorded_turn_diff(entry, run_dir)
        if part is None:
            yield f"no diff: {one_line(reason or 'it was not recorded')}"
        else:
            yield from _colored(part, style) if part else ["no change in the workspace"]


def diff_figures(trajectory: Trajectory, run_dir: Path) -> str | None:
    """`2 files changed, +10 -3`; None without a diff of the run."""
    text, _ = recorded_diff(trajectory, run_dir)
    if text is None:
        return None
    added = removed = files = 0
    in_hunk = False
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            files, in_hunk = files + 1, False
        elif line.startswith("@@ "):
            in_hunk = True
        elif in_hunk:
            added += line.startswith("+")
            removed += line.startswith("-")
    return f"{plural(files, 'file')} changed, +{added:,} -{removed:,}" if files else "no change"


def _colored(text: str, style: Style) -> Iterator[str]:
    in_hunk = False
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("diff --git "):
            in_hunk = False
        # Line ends inside a line are text of the agent as anything else.
        shown = printable(line).replace("\n", " ")
        if line.startswith("@@"):
            in_hunk = True
            yield style.paint(shown, "cyan")
        elif not in_hunk:
            yield style.paint(shown, "bold") if shown else shown
        elif line.startswith(("+", "-")):
            yield style.paint(shown, "green" if line.startswith("+") else "red")
        else:
            yield shown
