"""The end of a run: what was saved where, and the exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vally.cli.messages import tell
from vally.text.display import single_line
from vally.text.glyphs import fit_glyphs

if TYPE_CHECKING:
    from vally.run.run_output import RunOutput
    from vally.run.run_settings import RunOutcome


def exit_code(outcome: RunOutcome, *, require_pass: bool) -> int:
    """What the command that made a run should return."""
    if outcome.stdout_closed:
        return 128 + signal.SIGPIPE
    if outcome.signal is not None:
        return 128 + outcome.signal
    summary = outcome.summary
    failed = summary.had_execution_errors or summary.partial
    # A shard without a stimulus has no verdict that could fail.
    return 1 if failed or (require_pass and not all(item.passed for item in summary.evals)) else 0


def artifact_lines(output: RunOutput, artifacts: Mapping[str, Path]) -> list[str]:
    """The files of a run by label, as a small table; nothing when there are none."""
    if not artifacts:
        return []
    width = max(len(label) for label in artifacts)
    rows = [f"  {label:<{width}} → {output.display_of(path)}" for label, path in artifacts.items()]
    return ["Saved artifacts", *rows]


def print_closing(lines: Sequence[str], *, to_stdout: bool) -> None:
    """Print lines in one go; to stderr when stdout carries machine output."""
    shown = [single_line(line) for line in lines]
    if to_stdout:
        click.echo(fit_glyphs("\n".join(shown), sys.stdout))
    else:
        tell(shown)
