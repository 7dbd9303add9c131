"""An experiment: evals in variants, as its file says it and as it resolves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vally.model.evalspec import Diagnostic, EvalSpec, Position
from vally.model.jsonio import content_hash

EnvironmentText = str | Mapping[str, object] | None
"""The name of an environment of the project file, or a mapping with the keys of a spec."""


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisValue:
    """One value of an axis; the label of a scalar is its text."""

    label: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a matrix: a JSON Pointer and what is set there."""

    name: str
    path: str
    values: tuple[AxisValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One variant with the changes it makes, as written (placeholders filled, `${eval.…}` left).

    `labels` has the label of each axis when a matrix made it. A change deeper than a key of `defaults` or of an
    environment appears as nested mappings.
    """

    name: str
    description: str | None = None
    overrides: Mapping[str, object] = field(default_factory=_empty)
    environment: EnvironmentText = None
    agent_environment: EnvironmentText = None
    labels: Mapping[str, str] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentConfig:
    """One loaded experiment file.

    `path` is absolute, `display_path` how records and messages name it (POSIX). `evals` are the patterns as written,
    `eval_files` the absolute paths of the files they match, each once. `vary` are JSON Pointers; those of a matrix
    come from its axes. `experiment_hash` has 16 hex digits.
    """

    name: str
    path: Path
    display_path: str
    description: str | None = None
    version: str | None = None
    evals: tuple[str, ...] = ()
    eval_files: tuple[Path, ...] = ()
    vary: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    axes: tuple[Axis, ...] = ()
    baseline: str | None = None
    overrides: Mapping[str, object] = field(default_factory=_empty)
    workers: int | None = None
    metadata: Mapping[str, object] = field(default_factory=_empty)
    experiment_hash: str = ""
    baseline_position: Position | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def variant_names(self) -> tuple[str, ...]:
        """The names of the variants, in order."""
        return tuple(variant.name for variant in self.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpec:
    """One eval in one variant.

    `eval_hash` is equal in all variants of an eval. The mappings have spec keys, paths relative to the project
    directory and no values of `env` and `headers`, so that they can be recorded: the `defaults`, the root environments
    by key, and the effective environment of each stimulus by its name.
    """

    variant: str
    spec: EvalSpec
    eval_hash: str
    config_hash: str
    defaults: Mapping[str, object] = field(default_factory=_empty)
    environments: Mapping[str, Mapping[str, object]] = field(default_factory=_empty)
    stimulus_environments: Mapping[str, Mapping[str, object]] = field(default_factory=_empty)

    @property
    def eval_file(self) -> str:
        """How records name the eval file."""
        return self.spec.display_path

    def shard_keys(self) -> Iterator[str]:
        """The keys of its trials in plan order; `runs: 0` has none."""
        from vally.model.results import NO_MODEL

        defaults = self.spec.defaults
        model = defaults.model or NO_MODEL
        runs = 1 if defaults.runs is None else defaults.runs
        for stimulus in self.spec.stimuli:
            for trial in range(runs):
                yield f"{self.eval_file}::{self.variant}::{model}::{stimulus.name}::trial-{trial}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """An experiment with all its evals resolved: for each eval file, in order, one spec per variant.

    `config` is None when the file has no usable structure. `used_params` are the names of all parameters that the
    files mention, `environment_values` the process variables that placeholders used.
    """

    config: ExperimentConfig | None
    specs: tuple[ResolvedSpec, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    used_params: frozenset[str] = frozenset()
    environment_values: Mapping[str, str] = field(default_factory=_empty)

    def plan_digest(self) -> str:
        """The hash of the whole plan, before sharding and filters."""
        return plan_digest((key, item.eval_hash, item.config_hash) for item in self.specs for key in item.shard_keys())


def plan_digest(rows: Iterable[tuple[str, str, str]]) -> str:
    """The hash of a plan from the shard key, eval hash and config hash of every trial, in any order."""
    return content_hash(sorted(rows))
