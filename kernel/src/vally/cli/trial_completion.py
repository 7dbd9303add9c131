"""Names of trials that a shell offers for a run that was typed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import click
from click.shell_completion import CompletionItem

from vally.cli.context import CliContext

LARGEST = 64 * 2**20
"""Files that are larger are not read while somebody waits for a completion."""
_MOST = 200


def complete_from_run(
    field: Literal["stimulus", "trial_index", "model", "variant"],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[Any]]]:
    """A `shell_complete` of an option: what the trials of the run in the parameter `run` have, else of the newest."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        from vally.cli.stored_runs import find_run
        from vally.run.stored_trials import read_trials
        from vally.spec import find_project

        context = ctx.find_object(CliContext)
        assert context is not None
        # An option that lacks its value keeps click from giving arguments to their parameters.
        word = ctx.params.get("run") or next(iter(ctx.args), None)
        run = find_run(word, context, find_project(context.cwd, context.cwd, context.config_path, context.no_config))
        files = [part.results for part in run.parts if part.results.stat().st_size <= LARGEST]
        found = {str(getattr(entry, field)) for path in files for entry in read_trials(path).entries}
        return [CompletionItem(value) for value in sorted(found) if value.startswith(incomplete)][:_MOST]

    return complete
