"""The kinds of files that can be migrated: how vally reads each, and what must stay equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vally import read_eval_spec, read_project

if TYPE_CHECKING:
    from vally import Diagnostic, EvalSpec, PluginHost, Project, ResolvedExperiment, Stimulus

T = TypeVar("T")
PROJECT_NAMES = (".vally.yaml", ".vally.yml")
_EXPERIMENT = re.compile(r"(?m)^(?:variants|matrix|vary)\s*:")
_SPEC = re.compile(r"(?m)^(?:stimuli|stimuli_from)\s*:")


@dataclass(frozen=True, slots=True)
class Reading:
    """What vally finds in a file: `plan` is everything a run depends on, apart from names of graders."""

    findings: tuple[Diagnostic, ...]
    plan: object
    grader_names: tuple[str, ...] = ()

    @property
    def errors(self) -> list[Diagnostic]:
        """What is wrong with it."""
        return [item for item in self.findings if item.level == "error"]


class Document(Protocol):
    """A file of one kind."""

    @property
    def path(self) -> Path: ...

    def read(self, content: bytes) -> Reading: ...


@dataclass(frozen=True, slots=True)
class Shared:
    """What files of one project are read with."""

    project: Project
    host: PluginHost
    environ: Mapping[str, str]

    def read(self, reader: Callable[..., T], path: Path, content: bytes) -> T:
        """What a reader of vally makes of a content in the place of a file."""
        project, host, environ = self.project, self.host, self.environ
        return reader(path, project=project, host=host, environ=environ, lint=True, skill_dirs=True, content=content)


@dataclass(frozen=True, slots=True)
class SpecFile:
    """An eval spec."""

    path: Path
    shared: Shared

    def read(self, content: bytes) -> Reading:
        """Findings in this file, and the effective spec."""
        loaded = self.shared.read(read_eval_spec, self.path, content)
        if loaded.spec is None:
            return Reading(loaded.diagnostics, None)
        own = tuple(item for item in loaded.diagnostics if item.file == loaded.spec.display_path)
        names = tuple(entry.name or "" for stimulus in loaded.spec.stimuli for entry in stimulus.graders)
        return Reading(own, _spec_plan(loaded.spec), names)


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """An experiment file; the evals it names are files of their own."""

    path: Path
    shared: Shared

    def read(self, content: bytes) -> Reading:
        """Findings in this file, and all its evals in all variants."""
        from vally import read_experiment

        resolved = self.shared.read(read_experiment, self.path, content)
        if resolved.config is None:
            return Reading(resolved.diagnostics, None)
        own = tuple(item for item in resolved.diagnostics if item.file == resolved.config.display_path)
        return Reading(own, _experiment_plan(resolved))


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file."""

    path: Path
    shared: Shared

    def read(self, content: bytes) -> Reading:
        """Findings in this file, and the project with its environments resolved."""
        project = read_project(self.path, content=content)
        return Reading(project.diagnostics, _project_plan(project, self.shared.environ))


def document_at(path: Path, shared: Shared) -> Document | None:
    """The file as what it is, told by name and top-level keys; None when it is nothing that can be migrated."""
    if path.name in PROJECT_NAMES:
        return ProjectFile(path, shared)
    text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if _SPEC.search(text):
        return SpecFile(path, shared)
    return ExperimentFile(path, shared) if _EXPERIMENT.search(text) else None


def _experiment_plan(resolved: ResolvedExperiment) -> object:
    """The experiment without how its changes are written, and what every eval becomes in every variant."""
    config = resolved.config
    assert config is not None
    variants = tuple((variant.name, variant.description, variant.labels) for variant in config.variants)
    bare = replace(config, variants=(), axes=(), overrides={}, experiment_hash="", diagnostics=())
    specs = tuple((item.variant, item.config_hash, _spec_plan(item.spec)) for item in resolved.specs)
    return _unplaced(bare), variants, specs


def _spec_plan(spec: EvalSpec) -> object:
    """The spec without positions, and with the weight of each grader in place of its name."""
    stimuli = tuple(_stimulus_plan(stimulus, spec.scoring.weights) for stimulus in spec.stimuli)
    scoring = replace(spec.scoring, weights={})
    document = _without_names(spec.document)
    return _unplaced(replace(spec, stimuli=stimuli, scoring=scoring, document=document, diagnostics=()))


def _stimulus_plan(stimulus: Stimulus, weights: Mapping[str, float]) -> Stimulus:
    graders = tuple(
        replace(
            entry,
            name=None,
            weight=entry.weight if entry.weight is not None else weights.get(entry.name or "", weights.get(entry.type)),
        )
        for entry in stimulus.graders
    )
    return replace(stimulus, graders=graders, document=_without_names(stimulus.document))


def _without_names(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document without what names of graders decide."""
    kept = {key: value for key, value in document.items() if key != "scoring"}
    if "graders" in kept:
        kept["graders"] = [{key: value for key, value in entry.items() if key != "name"} for entry in kept["graders"]]
    if "stimuli" in kept:
        kept["stimuli"] = [_without_names(stimulus) for stimulus in kept["stimuli"]]
    return kept


def _unplaced(value: Any) -> Any:
    """The same without positions in files."""
    if is_dataclass(value) and not isinstance(value, type):
        named = ((item.name, getattr(value, item.name)) for item in fields(value))
        return type(value).__name__, {name: _unplaced(item) for name, item in named if name != "position"}
    if isinstance(value, Mapping):
        return {key: _unplaced(item) for key, item in value.items()}
    return tuple(_unplaced(item) for item in value) if isinstance(value, (list, tuple)) else value


def _project_plan(project: Project, environ: Mapping[str, str]) -> object:
    bare = replace(project, environments={}, positions={}, diagnostics=())
    return bare, dict(_environments(project, environ))


def _environments(project: Project, environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    from vally import SpecError, resolve_environment

    for name in project.environments:
        try:
            yield name, resolve_environment(name, project=project, environ=environ)
        except SpecError as error:
            # What is missing here is missing after the change too.
            yield name, sorted((item.code, item.message) for item in error.diagnostics if item.level == "error")
