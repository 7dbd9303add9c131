"""`vally init`: a starter eval, or a plugin package."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from vally import CliContext, VallyError, display_options, print_line

DEFAULT_DIRECTORY = "evals/hello"
DEFAULT_EXECUTOR = "copilot-sdk"
KINDS = ("grader", "executor", "reporter")


@click.command("init")
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("--executor", metavar="NAME", help="Executor of the eval; copilot-sdk unless given.")
@click.option("--with-schema", metavar="PATH", help="Also write the JSON Schema there and refer to it.")
@click.option("--plugin", "kind", type=click.Choice(KINDS), help="Write a plugin package with tests instead.")
@display_options
@click.pass_obj
def _command(
    context: CliContext,
    /,
    directory: str | None,
    force: bool,
    executor: str | None,
    with_schema: str | None,
    kind: str | None,
) -> int:
    """Write DIR/eval.yaml, an eval to start from, or with --plugin a package that can be published.

    DIR is evals/hello, or vally-<kind>-example with --plugin.
    """
    if kind is not None:
        for name, value in (("--executor", executor), ("--with-schema", with_schema)):
            if value is not None:
                raise click.UsageError(f"{name} belongs to an eval, so it cannot be combined with --plugin")
        return _write_plugin(context, kind, directory or f"vally-{kind}-example", force=force)
    return _write_eval(context, directory or DEFAULT_DIRECTORY, executor or DEFAULT_EXECUTOR, with_schema, force=force)


def init_command() -> click.Command:
    """The command, for the record."""
    return _command


def _write_eval(context: CliContext, directory: str, executor: str, with_schema: str | None, *, force: bool) -> int:
    from vally_command_scaffold.files import create, is_schema, shown
    from vally_command_scaffold.starter_eval import files_beside, starter_eval

    target = context.cwd / directory / "eval.yaml"
    schema = None if with_schema is None else context.cwd / with_schema
    beside = {target.parent / path: text for path, text in files_beside(executor).items()}
    for path in (target, *beside):
        if path.exists() and not force:
            raise VallyError("the file exists", where=shown(context, path), hints=["overwrite it with --force"])
    if schema is not None and schema.exists() and not force and not is_schema(schema):
        raise VallyError(
            "the file exists and is no schema of vally",
            where=shown(context, schema),
            hints=["overwrite it with --force"],
        )
    text = starter_eval(target, executor, schema)
    if schema is not None:
        from vally_command_scaffold.schema_command import schema_text

        create(context, schema, schema_text(context, "eval"))
    for path, content in {target: text, **beside}.items():
        create(context, path, content)
    word = shlex.quote(shown(context, target))
    _print_next(context, [f"vally lint -e {word}", f"vally eval -e {word}"])
    return 0


def _write_plugin(context: CliContext, kind: str, directory: str, *, force: bool) -> int:
    from vally_command_scaffold.files import create, shown
    from vally_command_scaffold.plugin_package import plugin_files

    target = context.cwd / directory
    if not force and target.exists() and (not target.is_dir() or any(target.iterdir())):
        what = "the directory is not empty" if target.is_dir() else "this is a file"
        raise VallyError(what, where=shown(context, target), hints=["overwrite it with --force"])
    for path, text in plugin_files(kind, target).items():
        create(context, target / path, text)
    place = shown(context, target)
    specifier = place if Path(place).is_absolute() or place.startswith(".") else f"./{place}"
    _print_next(
        context,
        [
            f"pip install -e {shlex.quote(f'{place}[test]')}",
            f"pytest {shlex.quote(place)}",
            f"vally plugins list --kind {kind} --{kind}-plugin {shlex.quote(specifier)}",
        ],
    )
    return 0


def _print_next(context: CliContext, commands: list[str]) -> None:
    if not context.display.quiet:
        for line in ("Next:", *(f"  {command}" for command in commands)):
            print_line(line)
