"""What a run will do: evals x models x stimuli x trials, everything resolved before anything starts."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vally.model.evalspec import DEFAULT_JUDGE_MODEL, DEFAULT_TIMEOUT_MS, ExecutorChoice
from vally.model.results import MAIN_VARIANT, NO_MODEL
from vally.run.reporting import PlannedEval, PlannedStimulus
from vally.run.segments import SegmentNamer, segment
from vally.run.trial import JudgeSettings, TrialItem, WorkspaceChoice

if TYPE_CHECKING:
    from pathlib import Path

    from vally.model.evalspec import EvalSpec, Stimulus


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of the command that decide what runs; None means that the spec decides.

    `skill_dirs` are the skills of `--skill-dir`, for stimuli of which no layer declares skills; None without it.
    `direct_dir` is an explicit work directory in which trials that stage nothing run directly.
    """

    run_id: str
    project_root: Path
    work_dir: Path
    direct_dir: Path | None = None
    models: tuple[str, ...] = ()
    executor: str | None = None
    runs: int | None = None
    timeout_ms: int | None = None
    threshold: float | None = None
    judge_model: str | None = None
    judge_effort: str | None = None
    skill_dirs: tuple[Path, ...] | None = None
    workspace: Path | None = None
    in_place: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """One spec to plan, in one variant.

    `part` is the directory below the run directory that holds the records of the entry, empty for the run directory
    itself. `experiment` is what trial records say about the experiment; with it they get a `shardKey` too.
    """

    spec: EvalSpec
    variant: str = MAIN_VARIANT
    part: str = ""
    experiment: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPlan:
    """One eval x variant x model: what reporters see of it, and the item from which those of its trials are made."""

    planned: PlannedEval
    spec: EvalSpec
    stimuli: tuple[Stimulus, ...]
    trials: int
    executor: ExecutorChoice
    threshold: float | None
    template: Mapping[str, Any]
    segments: tuple[tuple[str, str, str], ...]
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a run will do. `skipped` names evals with `runs: 0`, which are validated only."""

    options: PlanOptions
    evals: tuple[EvalPlan, ...]
    skipped: tuple[str, ...] = ()
    total: int = 0

    def items(self) -> Iterator[TrialItem]:
        """Make the items in plan order, one at a time, so that memory does not grow with their number."""
        for evaluation in self.evals:
            for position in range(len(evaluation.stimuli)):
                for trial in range(evaluation.trials):
                    yield self._item(evaluation, position, trial)

    def skills(self, stimulus: Stimulus) -> tuple[Path, ...]:
        """Directories of the skills that a stimulus offers."""
        return _offered_skills(stimulus, self.options)

    def _item(self, evaluation: EvalPlan, position: int, trial: int) -> TrialItem:
        stimulus = evaluation.stimuli[position]
        planned = evaluation.planned
        key = f"{planned.variant}::{planned.model}::{stimulus.name}::trial-{trial}"
        segments = (*evaluation.segments[position], str(trial))
        return TrialItem(
            **evaluation.template,
            item_id=planned.item_id(stimulus.name, trial),
            stimulus=stimulus,
            trial_index=trial,
            seed=_seed(self.options.seed, f"{planned.name}::{key}"),
            skills=_offered_skills(stimulus, self.options),
            workspace=self._workspace(evaluation, position, trial),
            segments=segments,
        )

    def _workspace(self, evaluation: EvalPlan, position: int, trial: int) -> WorkspaceChoice:
        options, stimulus = self.options, evaluation.stimuli[position]
        if options.workspace is None:
            environment = stimulus.merged_environment
            staged = environment.stages_anything or _offered_skills(stimulus, options)
            if options.direct_dir is not None and not staged:
                return WorkspaceChoice(path=options.direct_dir, in_place=True, keep=True)
            return WorkspaceChoice()
        if options.in_place:
            return WorkspaceChoice(path=options.workspace, in_place=True, keep=True)
        eval_segment, stimulus_segment, model_segment = evaluation.segments[position]
        path = options.workspace
        if len({plan.planned.variant for plan in self.evals}) > 1:
            path /= segment(evaluation.planned.variant)
        if len({plan.planned.eval_file_path for plan in self.evals}) > 1:
            path /= eval_segment
        path /= stimulus_segment
        if len({plan.planned.model for plan in self.evals}) > 1:
            path /= model_segment
        if evaluation.trials > 1:
            path /= f"trial-{trial}"
        return WorkspaceChoice(path=path, root=options.workspace, keep=True)


def _offered_skills(stimulus: Stimulus, options: PlanOptions) -> tuple[Path, ...]:
    declared = stimulus.merged_environment.skills
    if declared is not None:
        return declared
    return options.skill_dirs or ()


def _seed(seed: int | None, key: str) -> int | None:
    if seed is None:
        return None
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def make_plan(specs: Sequence[EvalSpec | PlanEntry], options: PlanOptions) -> Plan:
    """Plan the selected stimuli of validated specs, in the order given."""
    entries = [item if isinstance(item, PlanEntry) else PlanEntry(spec=item) for item in specs]
    evals: list[EvalPlan] = []
    skipped: list[str] = []
    namer = SegmentNamer()
    labels = _labels(entries)
    for entry in entries:
        spec = entry.spec
        runs = _first(options.runs, spec.defaults.runs, 1)
        if runs == 0:
            skipped.append(spec.name)
            continue
        for model in options.models or (spec.defaults.model,):
            segments = _segments(entry, labels[spec.display_path], model or NO_MODEL, namer)
            evals.append(_eval_plan(entry, model, runs, len(evals), options, segments))
    total = sum(len(plan.stimuli) * plan.trials for plan in evals)
    return Plan(options=options, evals=tuple(evals), skipped=tuple(skipped), total=total)


def _labels(entries: Sequence[PlanEntry]) -> dict[str, str]:
    """What names each file: its eval, or its path where two files hold evals of one name or the eval has none."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        files[entry.spec.name].add(entry.spec.display_path)
    return {
        entry.spec.display_path: entry.spec.name if len(files[entry.spec.name]) == 1 else entry.spec.display_path
        for entry in entries
    }


def _eval_plan(
    entry: PlanEntry,
    model: str | None,
    runs: int,
    index: int,
    options: PlanOptions,
    segments: tuple[tuple[str, str, str], ...],
) -> EvalPlan:
    spec = entry.spec
    executor = _executor(spec, options)
    threshold = _first(options.threshold, spec.scoring.threshold, None)
    judge = JudgeSettings(
        provider=spec.defaults.judge_provider,
        model=_first(options.judge_model, spec.defaults.judge_model, DEFAULT_JUDGE_MODEL),
        reasoning_effort=_first(options.judge_effort, spec.defaults.judge_reasoning_effort),
    )
    planned = PlannedEval(
        index=index,
        name=spec.name,
        eval_file_path=spec.display_path,
        variant=entry.variant,
        model=model or NO_MODEL,
        executor=executor.name,
        judge_model=judge.model,
        threshold=threshold,
        stimuli=tuple(_planned_stimulus(stimulus, runs) for stimulus in spec.stimuli),
        skills=tuple(sorted({path.name for stimulus in spec.stimuli for path in _offered_skills(stimulus, options)})),
        source=spec.path,
        pass_rate=spec.scoring.pass_rate,
    )
    template: dict[str, Any] = {
        "run_id": options.run_id,
        "eval_name": spec.name,
        "eval_file_path": spec.display_path,
        "eval_index": index,
        "variant": entry.variant,
        "part": entry.part,
        "experiment": entry.experiment,
        "model": model,
        "total_trials": runs,
        "executor": executor,
        "spec_dir": spec.spec_dir,
        "spec_path": spec.path,
        "project_root": options.project_root,
        "scoring": replace(spec.scoring, threshold=threshold),
        "judge": judge,
        "timeout_ms": _first(options.timeout_ms, spec.defaults.timeout_ms, DEFAULT_TIMEOUT_MS),
        "max_agent_duration_ms": spec.defaults.max_agent_duration_ms,
        "reasoning_effort": spec.defaults.reasoning_effort,
        "work_dir": options.work_dir,
    }
    return EvalPlan(
        planned=planned,
        spec=spec,
        stimuli=spec.stimuli,
        trials=runs,
        executor=executor,
        threshold=threshold,
        template=template,
        segments=segments,
        part=entry.part,
    )


def _segments(entry: PlanEntry, label: str, model: str, namer: SegmentNamer) -> tuple[tuple[str, str, str], ...]:
    part = entry.part
    return tuple(
        (
            namer.segment((part,), label),
            namer.segment((part, label), stimulus.name),
            namer.segment((part, label, stimulus.name), model),
        )
        for stimulus in entry.spec.stimuli
    )


def _executor(spec: EvalSpec, options: PlanOptions) -> ExecutorChoice:
    choice = spec.defaults.executor or ExecutorChoice()
    if options.executor is None or options.executor == choice.name:
        return choice
    return ExecutorChoice(name=options.executor)


def _planned_stimulus(stimulus: Stimulus, runs: int) -> PlannedStimulus:
    line = stimulus.position.line if stimulus.position else None
    return PlannedStimulus(name=stimulus.name, line=line, grader_count=len(stimulus.graders), trials=runs)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
