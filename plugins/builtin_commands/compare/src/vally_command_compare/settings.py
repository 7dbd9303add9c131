"""Judge and criteria of a comparison, from options, what the baseline recorded, and specs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vally import (
    DEFAULT_JUDGE_MODEL,
    EvalSpec,
    JudgeSettings,
    ProviderConfig,
    ProviderSettings,
    ReadProblem,
    name_key,
    parse_json,
    print_warning,
    read_lines,
)
from vally_command_compare.judging import Rubric

REDACTED = "<redacted>"
_JUDGE_KEYS = frozenset({"judge_model", "judge_provider"})


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


@dataclass(frozen=True, slots=True)
class ChosenJudge:
    """The judge to ask, and who chose it, in words; `from_specs` when specs may name another one."""

    settings: JudgeSettings
    chosen_by: str
    from_specs: bool

    def hints(self) -> tuple[str, ...]:
        """What to do when this judge gives no answer."""
        provider = f"judge_provider '{self.settings.provider.type}'" if self.settings.provider else "no judge_provider"
        return (
            f"the judge was '{self.settings.model}' with {provider}, {self.chosen_by}",
            "set judge_provider and judge_model under defaults of a spec and name it with --eval-spec"
            if self.from_specs
            else "run the baseline again with another judge under defaults of its spec, or name another --judge-model",
        )


def judge_settings(
    recorded: Mapping[str, Any], specs: Sequence[EvalSpec], eval_file: str | None, model: str | None, effort: str | None
) -> ChosenJudge:
    """The judge to ask: options first, then what was recorded, then what a spec says, then what is built in."""
    named = [spec for spec in specs if eval_file in (None, spec.display_path)] or specs
    if recorded.keys() & _JUDGE_KEYS:
        found, chosen_by = _recorded(recorded), "as the baseline recorded it"
    elif named:
        found, chosen_by = _of_spec(named[0]), f"as {named[0].display_path} says"
    else:
        found, chosen_by = JudgeSettings(model=DEFAULT_JUDGE_MODEL), "because neither baseline nor spec names another"
    settings = replace(found, model=model or found.model, reasoning_effort=effort or found.reasoning_effort)
    return ChosenJudge(settings, chosen_by, from_specs=not recorded.keys() & _JUDGE_KEYS)


def _recorded(defaults: Mapping[str, Any]) -> JudgeSettings:
    model, effort = defaults.get("judge_model"), defaults.get("judge_reasoning_effort")
    return JudgeSettings(
        provider=_provider(defaults.get("judge_provider")),
        model=model if isinstance(model, str) and model else DEFAULT_JUDGE_MODEL,
        reasoning_effort=effort if isinstance(effort, str) else None,
    )


def _of_spec(spec: EvalSpec) -> JudgeSettings:
    defaults = spec.defaults
    return JudgeSettings(
        provider=defaults.judge_provider,
        model=defaults.judge_model or DEFAULT_JUDGE_MODEL,
        reasoning_effort=defaults.judge_reasoning_effort,
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
    """Criteria by `name_key`: the rubric of a stimulus, and the text of its first grader of the comparing kind."""
    return {
        name_key(stimulus.name): Rubric(items=stimulus.rubric, instructions=_instructions(stimulus.graders, grader))
        for spec in specs
        for stimulus in spec.stimuli
    }


def _instructions(entries: Iterable[Any], grader: str) -> str | None:
    for entry in entries:
        if entry.type == grader:
            prompt = entry.config.get("prompt")
            return prompt if isinstance(prompt, str) and prompt.strip() else None
    return None
