"""`vally ingest` as its users type it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from vally import (
    CliContext,
    VallyError,
    display_options,
    name_line,
    pad,
    plural,
    print_error,
    print_warning,
    run_place,
    write_machine_output,
)

DEFAULT_STORE = "eval-history.db"


@click.command("ingest")
@click.argument("directories", nargs=-1, required=True, metavar="DIRECTORY...")
@click.option("--store", metavar="PATH_OR_URL", help="SQLite file or database URL.  [default: eval-history.db]")
@click.option("--skip-existing", is_flag=True, help="Leave known runs alone, even when they changed.")
@click.option("--complete-only", is_flag=True, help="Leave out runs without a summary.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported and write nothing.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Machine output.")
@display_options
@click.pass_obj
def ingest(context: CliContext, /, **options: Any) -> int:
    """Read run directories into a store; runs that it knows already are left as they are."""
    return _run(context, options)


_HINT = "a run directory holds a file results.jsonl; 'vally eval' and 'vally experiment run' make some"


def _run(context: CliContext, options: Mapping[str, Any]) -> int:
    from vally_command_results.importing.importer import ImportOptions
    from vally_command_results.importing.session import (
        holds_runs,
        import_directories,
        outcomes_held,
        require_directory,
        totals_document,
    )
    from vally_command_results.store.opening import open_memory, open_store

    places = [run_place(word, context, where="DIRECTORY") for word in options["directories"]]
    directories = [require_directory(context.cwd, word) for word in places]
    words = options["store"] or context.environ.get("VALLY_STORE") or DEFAULT_STORE
    wanted = ImportOptions(
        skip_existing=options["skip_existing"], complete_only=options["complete_only"], dry_run=options["dry_run"]
    )
    is_new = "://" not in words and not (context.cwd / words).exists()
    # No store is made for nothing.
    is_new = is_new and (options["dry_run"] or not holds_runs(directories))
    store = open_memory() if is_new else open_store(words, context.cwd, create=not options["dry_run"])
    as_text = options["output"] == "text"
    try:
        summary = import_directories(store, directories, wanted, on_run=_print_run(context) if as_text else _ignore)
        held = outcomes_held(store)
        if not as_text:
            write_machine_output(totals_document(store, summary) + "\n")
    finally:
        store.close()
    for warning in summary.warnings:
        print_warning(warning)
    if not summary.runs:
        print_error(VallyError("no run found", where=", ".join(options["directories"]), hints=[_HINT]))
        return 1
    if as_text:
        click.echo(_closing_line(summary, words if is_new else store.shown, held, dry_run=options["dry_run"]))
    return 1 if summary.count("failed") else 0


def _closing_line(summary: Any, store: str, held: int, *, dry_run: bool) -> str:
    """What became of the runs, and how many outcomes the store holds now."""
    counts = {name: summary.count(name) for name in ("imported", "updated", "unchanged", "failed", "skipped")}
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    written = any(counts[name] for name in ("imported", "updated"))
    where = f"{plural(held, 'outcome')} in {store}" if written else f"nothing was written to {store}"
    if dry_run:
        where = f"nothing was written to {store}"
    return f"{plural(len(summary.runs), 'run')}: {shown}; {where}"


def _ignore(_: Any) -> None:
    return None


def _print_run(context: CliContext) -> Any:
    def show(run: Any) -> None:
        if context.display.quiet and run.result != "failed":
            return
        verdicts = ", ".join(f"{count} {name}" for name, count in run.counts.items())
        about = run.message or (f"{plural(sum(run.counts.values()), 'outcome')} ({verdicts})" if run.counts else "")
        click.echo(f"{run.result:<10} {pad(name_line(run.source), 34)} {name_line(about) if about else ''}".rstrip())

    return show


def command() -> click.Command:
    """Make the command."""
    return ingest
