"""Judge and criteria of a comparison: as the baseline recorded them, unless options or specs say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vally import (
    DEFAULT_JUDGE_MODEL,
    EvalSpec,
    JudgeSettings,
    ProviderConfig,
    ProviderSettings,
    ReadProblem,
    parse_json,
    print_warning,
    read_lines,
)
from vally_command_compare.judging import Rubric

REDACTED = "<redacted>"


def recorded_defaults(directory: Path, eval_file: str | None) -> Mapping[str, Any]:
    """The `defaults` that a run recorded for an eval file, or for its first one; empty when it recorded none."""
    found = [*_from_summary(directory / "run-summary.jsonl"), *_from_manifest(directory / "run-manifest.json")]
    for path, defaults in found:
        if eval_file in (None, path):
            return defaults
    return {}


def _from_summary(path: Path) -> Iterable[tuple[str, Mapping[str, Any]]]:
    problems: list[ReadProblem] = []
    try:
        with path.open("rb") as file:
            records = [line.record for line in read_lines(file, problems)]
    except OSError:
        return
    for record in records:
        if isinstance(record.get("resolvedDefaults"), Mapping):
            yield str(record.get("evalFile", "")), record["resolvedDefaults"]


def _from_manifest(path: Path) -> Iterable[tuple[str, Mapping[str, Any]]]:
    try:
        manifest = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return
    specs = manifest.get("specs") if isinstance(manifest, Mapping) else None
    for spec in specs if isinstance(specs, list) else ():
        if isinstance(spec, Mapping) and isinstance(spec.get("defaults"), Mapping):
            yield str(spec.get("path", "")), spec["defaults"]


def judge_settings(defaults: Mapping[str, Any], model: str | None, effort: str | None) -> JudgeSettings:
    """The judge to ask: options first, then what was recorded, then what is built in."""
    recorded_model, recorded_effort = defaults.get("judge_model"), defaults.get("judge_reasoning_effort")
    return JudgeSettings(
        provider=_provider(defaults.get("judge_provider")),
        model=model or (recorded_model if isinstance(recorded_model, str) else None) or DEFAULT_JUDGE_MODEL,
        reasoning_effort=effort or (recorded_effort if isinstance(recorded_effort, str) else None),
    )


def _provider(recorded: object) -> ProviderConfig | None:
    if not isinstance(recorded, Mapping):
        return None
    fields = dict(recorded)
    headers = fields.get("headers")
    if isinstance(headers, Mapping) and REDACTED in headers.values():
        print_warning("judge_provider: values of headers are not recorded; the judge is asked without them")
        del fields["headers"]
    try:
        return ProviderSettings.model_validate(fields).config()
    except ValueError:
        print_warning("judge_provider: what the baseline recorded cannot be used; the judge of the program is asked")
        return None


def rubrics_of(specs: Iterable[EvalSpec], grader: str) -> dict[str, Rubric]:
    """Criteria by stimulus name: its rubric, and the text of its first grader of the comparing kind."""
    return {
        stimulus.name: Rubric(items=stimulus.rubric, instructions=_instructions(stimulus.graders, grader))
        for spec in specs
        for stimulus in spec.stimuli
    }


def _instructions(entries: Iterable[Any], grader: str) -> str | None:
    for entry in entries:
        if entry.type == grader:
            prompt = entry.config.get("prompt")
            return prompt if isinstance(prompt, str) and prompt.strip() else None
    return None
