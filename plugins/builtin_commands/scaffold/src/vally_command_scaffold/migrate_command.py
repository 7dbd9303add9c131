"""`vally migrate`: older spellings, rewritten in place."""

from __future__ import annotations

import click

from vally import CliContext, display_options


@click.command("migrate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when something would change.")
@click.option("--diff", is_flag=True, help="Print the change instead of writing it.")
@display_options
@click.pass_obj
def _command(context: CliContext, /, paths: tuple[str, ...], check: bool, diff: bool) -> int:
    """Rewrite older spellings in eval specs, experiment files and project files.

    Comments, order, quotes and line ends stay; only the lines that hold an older spelling change, and the file means
    the same afterwards. A directory stands for all such files below it.
    """
    from vally_command_scaffold.migrating import Migrating

    return Migrating(context, check=check, diff=diff).run(paths)


def migrate_command() -> click.Command:
    """The command, for the record."""
    return _command
