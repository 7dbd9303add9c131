"""`vally schema`: JSON Schemas for editors and other programs."""

from __future__ import annotations

import click

from vally import CliContext, display_options, plugin_options_for, write_machine_output

KINDS = ("eval", "config", "experiment", "results")


@click.command("schema")
@click.argument("kind", type=click.Choice(KINDS), default="eval")
@click.option("--output-file", metavar="PATH", help="Write the schema to a file instead of stdout.")
@plugin_options_for("grader")
@display_options
@click.pass_obj
def _command(context: CliContext, /, kind: str, output_file: str | None) -> int:
    """Print the JSON Schema (draft 2020-12) of eval specs, project files, experiment files or result lines.

    It is made from the tables by which vally reads these files and from the config models of the plugins that are
    installed, named by the project file or given here.
    """
    text = schema_text(context, kind)
    if output_file is None:
        write_machine_output(text)
        return 0
    from vally_command_scaffold.files import create

    create(context, output_file, text)
    return 0


def schema_command() -> click.Command:
    """The command, for the record."""
    return _command


def schema_text(context: CliContext, kind: str) -> str:
    """The schema of a kind of document as it is printed, with the plugins of the project; raises VallyError."""
    import json

    from vally import json_schema
    from vally_command_scaffold.project import plugins_of_project

    schema = json_schema(kind, host=plugins_of_project(context))
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
