"""`--resume`: what the manifest of a run says about it, and whether it can still be continued."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic.alias_generators import to_camel

from vally.cli.stored_runs import run_place
from vally.cli.terminal import plural
from vally.errors import UsageError, VallyError
from vally.run.run_dir import MANIFEST_NAME, RunDirectory, hash_values

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.run.plan import Plan
    from vally.run.redaction import Redactor
    from vally.run.resuming import Kept
    from vally.run.run_dir import ManifestFacts
    from vally.run.run_output import RunOutput

ALLOWED = frozenset(
    {
        "--workers",
        "--max-retries",
        "--fail-fast",
        "--max-cost",
        "--max-tokens-total",
        "--require-pass",
        "--output",
        "--reporter-plugin",
        "--shutdown-timeout",
        "--param",
        "--backend-args",
        "--quiet",
        "--verbose",
        "--color",
        "--progress",
        "--log-level",
        "--resume",
    }
)
"""Options that may stand beside `--resume`; those that reporters bring may too."""

_PLUGIN_WORDS = ("grader_plugin", "executor_plugin", "reporter_plugin", "no_plugin")
_PLUGIN_FLAGS = ("no_project_plugins", "no_plugins")


class Resumption:
    """A run directory that is to be continued. `kind` is that of the command; raises `VallyError` when it cannot be."""

    def __init__(self, context: CliContext, run_dir: str, *, kind: str = "eval") -> None:
        self._context = context
        run_dir = run_place(run_dir, context, where="--resume", experiment=kind == "experiment")
        self.directory = RunDirectory((context.cwd / run_dir).absolute())
        self.manifest = self._read(run_dir)
        if self.manifest.get("kind") != kind:
            raise VallyError(
                f"{run_dir} is a run of kind '{self.manifest.get('kind')}', not '{kind}'", where="--resume"
            )

    def _read(self, word: str) -> Mapping[str, Any]:
        from vally.model.jsonio import parse_json

        try:
            value = parse_json(self.directory.manifest_path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            hint = "name the directory of a run; one that stopped before it had a manifest has nothing to continue"
            raise VallyError(f"no {MANIFEST_NAME} in {word}", where="--resume", hints=[hint]) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise VallyError(f"{MANIFEST_NAME} of {word} cannot be read: {reason}", where="--resume") from None
        if not isinstance(value, dict) or value.get("type") != "run-manifest" or value.get("version") != 1:
            raise VallyError(f"{word}/{MANIFEST_NAME} is not a manifest that this version knows", where="--resume")
        return value

    def options(self, options: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
        """The options of the run, with those given now in their place; also restores what the context holds of them.

        `given` are the long names of the options on the command line. Raises `UsageError` for one that would change
        the plan, and for parameters that differ from those of the run.
        """
        self._refuse_others(given)
        stored: Mapping[str, Any] = self.manifest.get("options") or {}
        _check_values("--param", self.manifest.get("params") or {}, dict(options["params"]))
        self._restore_context(stored)
        kept = {"params", "backend_args", "run_id", "resume"}
        merged = dict(options)
        for name in options:
            if name not in kept and to_camel(name) in stored and f"--{name.replace('_', '-')}" not in given:
                merged[name] = _tuples(stored[to_camel(name)])
        merged["run_id"] = self.manifest["runId"]
        return merged

    def reporter_flags(self, flags: Mapping[str, Any]) -> dict[str, Any]:
        """The options of reporters, those of the run and those given now."""
        stored: Mapping[str, Any] = (self.manifest.get("options") or {}).get("reporters") or {}
        return {**stored, **{name: value for name, value in flags.items() if value}}

    def _refuse_others(self, given: Collection[str]) -> None:
        refused = sorted(set(given) - ALLOWED)
        if refused:
            raise UsageError(
                f"{refused[0]} cannot be combined with --resume, which keeps plan and options of the run",
                hints=[f"allowed: {', '.join(sorted(ALLOWED - {'--resume'}))}, and options of reporters"],
            )

    def _restore_context(self, stored: Mapping[str, Any]) -> None:
        context = self._context
        words = context.plugin_words
        for name in _PLUGIN_WORDS:
            words[name] = (*(stored.get(to_camel(name)) or ()), *(words.get(name) or ()))
        for name in _PLUGIN_FLAGS:
            words[name] = bool(stored.get(to_camel(name)))
        context.config, context.no_config = stored.get("config"), bool(stored.get("noConfig"))
        cwd = stored.get("cwd")
        if isinstance(cwd, str) and Path(cwd).is_dir():
            context.cwd = Path(cwd)

    def check(self, plan: Plan, facts: ManifestFacts) -> None:
        """Compare with what would run now; raises `VallyError` that lists every file and setting that changed."""
        changed = [
            *_changed("spec", self.manifest.get("specs"), [spec.record() for spec in facts.specs]),
            *_changed("skill", self.manifest.get("skills"), facts.skill_records()),
        ]
        hint = "start a new run, or grade the records of this one with 'vally grade'"
        if changed:
            raise VallyError(
                f"{plural(len(changed), 'file')} changed since the run began",
                where="--resume",
                hints=[*changed, hint],
            )
        _check_values("--backend-args", self.manifest.get("backendArgs") or {}, facts.backend_args)
        stored = list(self.manifest.get("items") or ())
        planned = list(facts.items)
        if stored != planned:
            new, gone = sorted(set(planned) - set(stored)), sorted(set(stored) - set(planned))
            first = [f"only {where}: {ids[0]}" for where, ids in (("now", new), ("in the run", gone)) if ids]
            raise VallyError("the plan is not that of the run any more", where="--resume", hints=[*first, hint])

    def open(self, plan: Plan, redactor: Redactor, display: Any) -> tuple[RunOutput, Kept]:
        """Lock the directory and rewrite its results files with the records that stay. Raises `VallyError`."""
        from vally.run.resuming import keep_records
        from vally.run.run_output import RunOutput

        parts = dict.fromkeys(evaluation.part for evaluation in plan.evals)
        output = RunOutput(self.directory, redactor, display, parts)
        try:
            kept = keep_records(output.parts, plan.items(), str(self.manifest.get("startedAt") or ""))
        except BaseException as error:
            output.close()
            if isinstance(error, OSError):
                raise VallyError(
                    f"the results cannot be rewritten: {error.strerror or error}", where=display(self.directory.path)
                ) from error
            raise
        output.open()
        return output, kept


def _check_values(option: str, stored: Mapping[str, str], values: Mapping[str, str | Sequence[str]]) -> None:
    """Raise `UsageError` unless values are those of which the run has stored the hashes."""
    missing = [name for name in stored if name not in values]
    if missing:
        raise UsageError(
            f"the run had {option} {', '.join(missing)}: give {'it' if len(missing) == 1 else 'them'} again",
            where="--resume",
            hints=[f"values of {option} are not stored"],
        )
    hashes = hash_values(values)
    for name in values:
        if hashes[name] != stored.get(name):
            what = "differs from its value in the run" if name in stored else "was not given to the run"
            raise UsageError(f"{option} {name} {what}", where="--resume")


def _changed(what: str, stored: Any, now: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each file of the run whose hash is another now; what only one side has changes the plan itself."""
    before = {_source(item): item.get("sha256") for item in stored or () if isinstance(item, dict)}
    lines = [
        f"{what} {item['path']}" for item in now if _source(item) in before and before[_source(item)] != item["sha256"]
    ]
    return list(dict.fromkeys(lines))


def _source(item: Mapping[str, Any]) -> tuple[Any, Any]:
    return item.get("path"), item.get("variant")


def given_options(ctx: click.Context) -> frozenset[str]:
    """The long names of the options on the command line, those that reporters bring left out."""
    from click.core import ParameterSource

    own = {param.name for param in ctx.command.params}
    return frozenset(
        max(param.opts, key=len)
        for param in ctx.command.params
        if param.name in own
        and isinstance(param, click.Option)
        and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    )


def _tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that options have."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
