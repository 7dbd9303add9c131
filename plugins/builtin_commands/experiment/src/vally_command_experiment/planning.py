"""From the resolved experiment to what runs: variants, filters and the shard choose among its specs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vally import (
    EvalSpec,
    ExperimentConfig,
    PlanEntry,
    Redactor,
    ResolvedExperiment,
    ResolvedSpec,
    SegmentNamer,
    SelectionWords,
    VallyError,
    did_you_mean,
    expand_glob,
    name_key,
    print_warning,
    select_stimuli,
    with_clean_names,
)
from vally_command_experiment.shards import Shard


def variant_parts(names: Iterable[str]) -> dict[str, str]:
    """The directory of each variant."""
    namer = SegmentNamer()
    return {name: namer.segment((), name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A resolved experiment with clean names. `parts` are the directories of its variants, in their order."""

    config: ExperimentConfig
    specs: tuple[ResolvedSpec, ...]
    plan_digest: str
    parts: dict[str, str]

    @classmethod
    def of(cls, resolved: ResolvedExperiment, redactor: Redactor) -> Experiment:
        """Prepare a resolution without errors."""
        assert resolved.config is not None
        return cls(
            config=resolved.config,
            specs=tuple(replace(item, spec=with_clean_names(item.spec, redactor)) for item in resolved.specs),
            plan_digest=resolved.plan_digest(),
            parts=variant_parts(resolved.config.variant_names),
        )

    def block(self, item: ResolvedSpec, run_id: str) -> dict[str, object]:
        """What trial records say about the experiment."""
        block: dict[str, object] = {
            "name": self.config.name,
            "runId": run_id,
            "variant": item.variant,
            "evalFile": item.eval_file,
            "evalHash": item.eval_hash,
            "configHash": item.config_hash,
        }
        return block if self.config.baseline is None else {**block, "baseline": self.config.baseline}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the options select. `eval_filters` are paths or globs relative to the experiment file."""

    variants: tuple[str, ...] = ()
    eval_filters: tuple[str, ...] = ()
    words: SelectionWords
    shard: Shard

    def entries(self, experiment: Experiment, run_id: str) -> list[PlanEntry]:
        """The chosen specs in plan order; raises `VallyError` for a choice of nothing."""
        variants = self._variants(experiment.config)
        files = self._files(experiment)
        hits: dict[str, int] = {}
        chosen = [
            (item, select_stimuli(item.spec, self.words, None, hits))
            for item in experiment.specs
            if item.eval_file in files and item.variant in variants
        ]
        for pattern in self.words.patterns:
            if not hits.get(pattern):
                print_warning(f"--stimulus '{pattern}' matches nothing")
        if not any(spec.stimuli for _, spec in chosen):
            raise VallyError("no stimulus matches", hints=["check --stimulus, --tag, --variant and --eval-filter"])
        # A shard may be left without a stimulus; the others have them.
        return [
            PlanEntry(
                spec=spec,
                variant=item.variant,
                part=experiment.parts[item.variant],
                experiment=experiment.block(item, run_id),
            )
            for item, spec in self._of_shard(experiment, chosen)
            if spec.stimuli
        ]

    def _variants(self, config: ExperimentConfig) -> set[str]:
        """The chosen variants, all without a choice; however the letters of a name are composed."""
        if not self.variants:
            return set(config.variant_names)
        known_names = {name_key(name): name for name in config.variant_names}
        for name in self.variants:
            if name_key(name) not in known_names:
                hint = did_you_mean(name, config.variant_names)
                known = f"variants: {', '.join(config.variant_names)}"
                raise VallyError(
                    f"no variant named '{name}' in {config.display_path}",
                    where="--variant",
                    hints=[hint, known] if hint else [known],
                )
        return {known_names[name_key(name)] for name in self.variants}

    def _files(self, experiment: Experiment) -> set[str]:
        every = {item.eval_file: item.spec.path for item in experiment.specs}
        if not self.eval_filters:
            return set(every)
        root = experiment.config.path.parent
        wanted = {path for text in self.eval_filters for path in _matched(root, text)}
        kept = {name for name, path in every.items() if path.resolve() in wanted}
        if not kept:
            raise VallyError(
                "eval filters matched zero files", where="--eval-filter", hints=[f"evals: {', '.join(sorted(every))}"]
            )
        return kept

    def _of_shard(
        self, experiment: Experiment, chosen: Sequence[tuple[ResolvedSpec, EvalSpec]]
    ) -> Iterator[tuple[ResolvedSpec, EvalSpec]]:
        shard = self.shard
        # Filters do not change which shard a unit belongs to.
        units = shard.chosen(
            shard.unit(item.eval_file, stimulus.name) for item in experiment.specs for stimulus in item.spec.stimuli
        )
        for item, spec in chosen:
            kept = tuple(part for part in spec.stimuli if shard.unit(item.eval_file, part.name) in units)
            yield item, spec if len(kept) == len(spec.stimuli) else replace(spec, stimuli=kept)


def _matched(root: Path, text: str) -> set[Path]:
    """The files that a path or glob means; a directory stands for the eval in it."""
    path = (root / text).resolve()
    found = [path] if path.exists() else [(root / name).resolve() for name in expand_glob(root, text, dotfiles=False)]
    return {file for item in found for file in ([item] if item.is_file() else _evals_in(item))}


def _evals_in(directory: Path) -> list[Path]:
    return [path for name in ("eval.yaml", "eval.yml") if (path := directory / name).is_file()]
