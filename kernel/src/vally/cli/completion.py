"""Values that a shell offers: suites, tags, stimuli, variants, runs, plugins, files.

Nothing here loads a plugin of a project or opens a connection. What is in the way of a completion ends it without a
word, because a shell would print that word into the line that is being typed.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from vally.cli.context import CliContext

if TYPE_CHECKING:
    from vally.model.evalspec import Project

Value = str | CompletionItem[str]
Completer = Callable[[click.Context, str], Iterable[Value]]
PARTIAL = "partial"
"""Type of an item after which more is to be typed, so that no blank may follow."""
_MOST_FILES = 200
_MOST_RUNS = 50


def project_of(ctx: click.Context, *starts: Path) -> Project:
    """The project of what was typed so far: that of the first start, else of the current directory."""
    from vally.spec import find_project

    context = _context(ctx)
    named = ctx.params.get("config") or context.environ.get("VALLY_CONFIG")
    ignored = bool(ctx.params.get("no_config"))
    start = starts[0] if starts else context.cwd
    return find_project(start, context.cwd, context.cwd / named if named and not ignored else None, ignored)


def suites(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Names of the suites of the project."""
    return project_of(ctx, *_spec_directories(ctx)).suites


def tags(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """`key=` for every tag, and behind it the values of that tag."""
    known: dict[str, set[str]] = {}
    for names in _outlines(ctx):
        for key, values in names.tags:
            known.setdefault(key, set()).update(values)
    key, separator, typed = incomplete.partition("=")
    if not separator:
        return sorted(f"{name}=" for name in known)
    before, comma, _ = typed.rpartition(",")
    return sorted(f"{key}={before}{comma}{value}" for value in known.get(key, ()) if "," not in value)


def stimuli(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Names of stimuli of the given specs, of the given suites, else of all that are discovered."""
    exclude = "!" if incomplete.startswith("!") else ""
    return dict.fromkeys(f"{exclude}{name}" for names in _outlines(ctx) for name in names.stimuli)


def _outlines(ctx: click.Context) -> Iterator[Any]:
    from vally.spec import discover_evals, expand_spec_words, suite_files
    from vally.spec.outline import outline_of

    context = _context(ctx)
    project = project_of(ctx, *_spec_directories(ctx))
    words, chosen = _words(ctx, "specs"), _words(ctx, "suites")
    if words:
        paths, _ = expand_spec_words(words, context.cwd, project)
    elif chosen:
        found = [suite_files(project, project.suites[name])[0] for name in chosen if name in project.suites]
        paths = list(dict.fromkeys(path for files in found for path in files))
    else:
        paths, _ = discover_evals(project)
    for path in paths[:_MOST_FILES]:
        yield outline_of(path, project=project, host=context.bare_host, environ=context.environ)


def _words(ctx: click.Context, name: str) -> tuple[str, ...]:
    value = ctx.params.get(name) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def _spec_directories(ctx: click.Context) -> list[Path]:
    """Where the given specs lie."""
    paths = [_context(ctx).cwd / word for word in _words(ctx, "specs")]
    return [path if path.is_dir() else path.parent for path in paths]


def variants(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Names of the variants of the first experiment file or run among what was typed."""
    # An option that lacks its value keeps click from giving arguments to their parameters.
    given = [_context(ctx).cwd / value for value in _texts([*ctx.params.values(), ctx.args])]
    return next((names for path in given if path.exists() and (names := _variants_at(ctx, path))), ())


def _variants_at(ctx: click.Context, path: Path) -> tuple[str, ...]:
    from vally.spec.outline import variants_of

    return variants_of(path, project=lambda: project_of(ctx, path.parent))


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _texts(value)


def runs(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Run directories below the output directory, the newest first, and `latest`."""
    cwd = _context(ctx).cwd
    project = project_of(ctx)
    named = ctx.params.get("output_dir")
    parents = [cwd / named] if isinstance(named, str) else [cwd / "vally-results", cwd / "vally-experiment-results"]
    if not named and project.results:
        parents.insert(0, project.root / project.results)
    below = (path for parent in parents if parent.is_dir() for path in sorted(parent.iterdir(), reverse=True))
    shown = [Path(os.path.relpath(path, cwd)).as_posix() for path in below if _is_run(path)][:_MOST_RUNS]
    return [*shown, *(["latest"] if shown else [])]


def _is_run(path: Path) -> bool:
    return (path / "results.jsonl").is_file() or (path / "experiment-manifest.json").is_file()


def records_of(kind: str) -> Completer:
    """Names of the installed plugins of a kind."""

    def names(ctx: click.Context, _incomplete: str) -> Iterable[str]:
        return _context(ctx).bare_host().records(kind)

    return names


def distributions(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Names of the distributions that plugins come from."""
    from vally.discovery import installed_sources

    return sorted({source.owner.name for source in installed_sources() if source.owner is not None})


def specifiers(kind: str) -> Completer:
    """Entry points and distributions of a kind; without a match files."""

    def names(_ctx: click.Context, incomplete: str) -> Iterable[Value]:
        from vally.discovery import installed_sources

        found = [source for source in installed_sources() if source.kind == kind]
        labels = {source.label for source in found} | {source.owner.name for source in found if source.owner}
        return [*sorted(labels), CompletionItem(incomplete, type="file")]

    return names


def commands(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Names of the commands of the program."""
    program = ctx.find_root().command
    return program.list_commands(ctx.find_root()) if isinstance(program, click.Group) else ()


def _paths(kind: str) -> Completer:
    """The shell's own completion of files or directories."""

    def items(_ctx: click.Context, incomplete: str) -> Iterable[Value]:
        return [CompletionItem(incomplete, type=kind)]

    return items


FILES, DIRECTORIES = _paths("file"), _paths("dir")
BY_OPTION: Mapping[str, Completer] = {
    "--backend": records_of("backend"),
    "--eval-plugin": specifiers("eval-provider"),
    "--executor": records_of("executor"),
    "--executor-plugin": specifiers("executor"),
    "--exporter": records_of("exporter"),
    "--filter": stimuli,
    "--grader-plugin": specifiers("grader"),
    "--no-plugin": distributions,
    "--reporter-plugin": specifiers("reporter"),
    "--resume": runs,
    "--stimulus": stimuli,
    "--suite": suites,
    "--tag": tags,
    "--variant": variants,
}
"""What an option of one name takes, on whatever command it stands."""
BY_METAVAR: Mapping[str, Completer] = {
    "COMMAND": commands,
    "DIR": DIRECTORIES,
    "DIRECTORY": DIRECTORIES,
    "FILE": FILES,
    "PATH": FILES,
    "RUN": runs,
    "SPEC": FILES,
}


def attach(command: click.Command) -> None:
    """Let the parameters of a command complete by their names; what they offer themselves comes first."""
    for param in command.params:
        completer = _completer(param)
        if completer is not None:
            # In this process nothing but completion happens, so the shared object may change.
            setattr(param, "shell_complete", functools.partial(_complete, param.shell_complete, completer))  # noqa: B010
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        attach(below)


def _completer(param: click.Parameter) -> Completer | None:
    if isinstance(param, click.Option):
        if param.is_flag:
            return None
        named = next((BY_OPTION[name] for name in param.opts if name in BY_OPTION), None)
        if named is not None:
            return named
    metavar = (param.metavar or param.name or "").strip("[].").upper()
    return BY_METAVAR.get(metavar)


def _complete(own: Any, completer: Completer, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    found = own(ctx, incomplete)
    if found:
        return list(found)
    items = [item if isinstance(item, CompletionItem) else _item(item) for item in completer(ctx, incomplete)]
    return [item for item in items if item.type in ("file", "dir") or item.value.startswith(incomplete)]


def _item(text: str) -> CompletionItem[str]:
    return CompletionItem(text, type=PARTIAL if text.endswith("=") else "plain")


def _context(ctx: click.Context) -> CliContext:
    context = ctx.find_object(CliContext)
    assert context is not None
    return context


def answer(program: click.Group, context: CliContext, instruction: str) -> int:
    """Print what a completion script asks for; whatever goes wrong completes nothing, silently."""
    from vally.cli.completion_shells import SHELLS

    with contextlib.suppress(BaseException), Path(os.devnull).open("w") as nowhere:
        with contextlib.redirect_stderr(nowhere):
            shell = SHELLS[instruction.partition("_")[0]](program, context)
            text = shell.complete()
        click.echo(text, nl=False)
    return 0
