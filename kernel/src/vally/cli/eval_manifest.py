"""What `run-manifest.json` says about a run of `vally eval`, so that it can be understood and continued."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vally._version import __version__
from vally.cli.messages import print_warning
from vally.model.jsonio import canonical_json, plain_value, timestamp
from vally.run.redaction import redact_environment_maps
from vally.run.run_dir import ManifestFacts, ManifestSpec

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import EvalSpec, Project
    from vally.run.plan import EvalPlan, Plan
    from vally.run.run_output import RunOutput

_SECRET_OPTIONS = {"params", "backend_args"}
"""Options whose values are stored as hashes only."""


def write_manifest(
    output: RunOutput,
    context: CliContext,
    plan: Plan,
    project: Project,
    host: PluginHost,
    options: Mapping[str, Any],
    flags: Mapping[str, Any],
    backend_args: Mapping[str, str | list[str]],
) -> None:
    """Write `run-manifest.json`; a run can do without one, so a failure is a warning."""
    facts = manifest_facts(plan, project, host, stored_options(context, options, flags), options, backend_args)
    try:
        output.directory.write_manifest(facts)
    except OSError as error:
        print_warning(f"run-manifest.json not written: {error.strerror or error}")


def manifest_facts(
    plan: Plan,
    project: Project,
    host: PluginHost,
    stored: Mapping[str, Any],
    options: Mapping[str, Any],
    backend_args: Mapping[str, str | list[str]],
) -> ManifestFacts:
    """The facts of a run: resolved plan, options as given, plugins in use, hashes of specs and parameters."""
    evals = {evaluation.planned.eval_file_path: evaluation for evaluation in plan.evals}
    return ManifestFacts(
        run_id=plan.options.run_id,
        tool_version=__version__,
        started_at=timestamp(),
        project_file=project.path.name if project.path else None,
        seed=plan.options.seed,
        options=stored,
        plugins=_plugins(host),
        specs=[_spec(path, evaluation) for path, evaluation in evals.items()],
        params=dict(options["params"]),
        backend_args=backend_args,
        items=[item.item_id for item in plan.items()],
    )


def stored_options(context: CliContext, options: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a command in camelCase, without those whose values may be secrets."""
    given = {**options, **context.plugin_words, "config": context.config, "no_config": context.no_config}
    kept = {_camel(name): _plain(value) for name, value in given.items() if name not in _SECRET_OPTIONS}
    return {**kept, "reporters": {name: value for name, value in flags.items() if value}, "cwd": str(context.cwd)}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plugins(host: PluginHost) -> list[dict[str, Any]]:
    return [
        {"kind": item.kind, "name": item.name, "version": item.version, "source": item.source}
        for item in host.listing(["grader", "executor", "backend", "reporter"])
        if item.status == "ok"
    ]


def _spec(path: str, evaluation: EvalPlan) -> ManifestSpec:
    return ManifestSpec(
        path=path,
        name=evaluation.planned.name,
        sha256=_spec_hash(evaluation.spec),
        defaults=redact_environment_maps(evaluation.spec.document.get("defaults") or {}),
    )


def _spec_hash(spec: EvalSpec) -> str:
    text = canonical_json(plain_value(spec.document).value)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
