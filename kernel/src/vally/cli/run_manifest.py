"""What `run-manifest.json` says about a run, so that it can be understood and continued."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from vally._version import __version__
from vally.model.jsonio import canonical_json, plain_value, timestamp, without_surrogates
from vally.run.redaction import redact_environment_maps
from vally.run.run_dir import ManifestFacts, ManifestSpec
from vally.run.run_output import display_path

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.host import PluginHost
    from vally.model.evalspec import EvalSpec, Project
    from vally.run.plan import Plan

_NOT_STORED = {"params", "backend_args", "resume"}
"""Options whose values are stored as hashes only, and one that no run has."""


def manifest_facts(
    plan: Plan,
    project: Project,
    host: PluginHost,
    *,
    kind: str,
    stored: Mapping[str, Any],
    params: Mapping[str, str],
    backend_args: Mapping[str, str | list[str]],
    backend: Mapping[str, str],
) -> ManifestFacts:
    """The facts of a run: resolved plan, options as given, plugins in use, hashes of specs, skills and parameters."""
    return ManifestFacts(
        run_id=plan.options.run_id,
        kind=kind,
        tool_version=__version__,
        started_at=timestamp(),
        project_file=project.path.name if project.path else None,
        seed=plan.options.seed,
        options=stored,
        plugins=_plugins(host),
        specs=_specs(plan),
        skills=_skills(plan),
        params=params,
        backend_args=backend_args,
        backend=backend,
        items=[without_surrogates(item.item_id) for item in plan.items()],
    )


def stored_options(context: CliContext, options: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a command in camelCase, without those whose values may be secrets."""
    given = {**options, **context.plugin_words, "config": context.config, "no_config": context.no_config}
    kept = {to_camel(name): _plain(value) for name, value in given.items() if name not in _NOT_STORED}
    return {**kept, "reporters": {name: value for name, value in flags.items() if value}, "cwd": str(context.cwd)}


def _plugins(host: PluginHost) -> list[dict[str, Any]]:
    return [
        {"kind": item.kind, "name": item.name, "version": item.version, "source": item.source}
        for item in host.listing(["grader", "executor", "backend", "reporter"])
        if item.status == "ok"
    ]


def _specs(plan: Plan) -> list[ManifestSpec]:
    evals = {(item.planned.eval_file_path, item.planned.variant): item for item in plan.evals}
    return [
        ManifestSpec(
            path=path,
            name=evaluation.planned.name,
            variant=variant,
            sha256=_spec_hash(evaluation.spec),
            defaults=redact_environment_maps(evaluation.spec.document.get("defaults") or {}),
            threshold=evaluation.planned.threshold,
            pass_rate=evaluation.planned.pass_rate,
        )
        for (path, variant), evaluation in evals.items()
    ]


def _skills(plan: Plan) -> dict[str, str]:
    """The SHA-256 of each SKILL.md that is offered, by its path relative to the project, else absolute."""
    directories = {
        path for evaluation in plan.evals for stimulus in evaluation.stimuli for path in plan.skills(stimulus)
    }
    shown = display_path(plan.options.project_root, plan.options.project_root)
    hashes = {}
    for directory in sorted(directories):
        # A skill that cannot be read is told where it is used.
        with contextlib.suppress(OSError):
            hashes[shown(directory)] = hashlib.sha256((directory / "SKILL.md").read_bytes()).hexdigest()
    return hashes


def _spec_hash(spec: EvalSpec) -> str:
    text = canonical_json(plain_value(spec.document).value)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
