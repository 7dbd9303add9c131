"""`vally doctor` as its users type it."""

from __future__ import annotations

import click

from vally import CliContext, display_options, plugin_options


@click.command("doctor")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Format.")
@click.option("--strict", is_flag=True, help="Exit 1 when something cannot start.")
@plugin_options
@display_options
@click.pass_obj
def _command(context: CliContext, /, output: str, strict: bool) -> int:
    """Tell which executors, judges and backends can start, and what is missing for the others.

    Those that need no settings are asked as --preflight asks them, which may start processes and use the network.
    """
    from vally import find_project, print_diagnostics, reserved_stdout

    project = find_project(context.cwd, context.cwd, context.config_path, context.no_config)
    print_diagnostics(project.diagnostics)
    if any(item.level == "error" for item in project.diagnostics):
        return 1
    from vally_command_doctor.examination import examine
    from vally_command_doctor.report import print_report

    with reserved_stdout(output != "text"):
        host = context.host(project)
        findings = examine(host, context)
        print_report(findings, context, output)
    return 1 if strict and findings.anything_missing else 0


def command() -> click.Command:
    """The command, for the record."""
    return _command
