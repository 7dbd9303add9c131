"""`vally plugins list`: every known extension, where it comes from and whether it works."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from vally.cli.context import CliContext
from vally.cli.options import display_options, plugin_options
from vally.records import KINDS

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.listing import PluginInfo

HEADINGS = ("KIND", "NAME", "VERSION", "SOURCE", "STATUS")
ABSENT = "–"


@click.group("plugins")
def command() -> None:
    """List what is installed and what failed to load."""


@command.command("list")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Only extensions of this kind.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Machine output.")
@click.option("--strict", is_flag=True, help="Exit 1 when a plugin failed to load.")
@plugin_options
@display_options
@click.pass_obj
def list_command(context: CliContext, /, kind: str | None, output: str, strict: bool) -> int:
    """Print every known extension: failed, conflicting, shadowed and switched-off ones too."""
    host = _host(context)
    if host is None:
        return 1
    rows = host.listing([kind] if kind else None)
    if not context.display.quiet:
        _print_warnings(host)
    if output == "json":
        from vally.cli.machine_output import write_machine_output

        write_machine_output(_json(rows))
    else:
        _print(_text(rows, verbose=context.display.verbose))
    return 1 if strict and any(row.state == "failed" for row in rows) else 0


def _host(context: CliContext) -> PluginHost | None:
    from vally.cli.messages import print_diagnostics
    from vally.spec import find_project

    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    print_diagnostics(project.diagnostics)
    broken = any(item.level == "error" for item in project.diagnostics)
    return None if broken else context.host(project)


def _print_warnings(host: PluginHost) -> None:
    from vally.cli.messages import print_warning

    # What failed or conflicts stands in the list itself.
    for warning in host.specifier_warnings():
        print_warning(warning)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _json(rows: Sequence[PluginInfo]) -> str:
    plugins = [
        {
            "kind": row.kind,
            "name": row.name,
            "version": row.version,
            "source": row.source,
            "origin": row.origin,
            "status": row.state,
            "reason": row.reason,
            "description": row.description,
        }
        for row in rows
    ]
    document: dict[str, Any] = {"type": "plugin-list", "version": 1, "plugins": plugins}
    return json.dumps(document, ensure_ascii=False) + "\n"


def _text(rows: Sequence[PluginInfo], *, verbose: bool) -> list[str]:
    from vally.text.display import single_line

    cells = [(row.kind, row.name, row.version or ABSENT, row.source, row.status) for row in rows]
    widths = [max(len(line[column]) for line in (HEADINGS, *cells)) for column in range(len(HEADINGS))]
    lines = [_aligned(HEADINGS, widths)]
    for row, line in zip(rows, cells, strict=True):
        lines.append(single_line(_aligned(line, widths)))
        if verbose:
            lines.extend(f"    {single_line(detail)}" for detail in _details(row))
    return lines


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _details(row: PluginInfo) -> list[str]:
    return [row.target, *([row.description] if row.description else []), *row.trace.splitlines()]
