"""Experiments for commands and programs: loading a file, and resolving all its evals in all variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally.errors import SpecError
from vally.model.evalspec import Diagnostic, Project
from vally.model.experiment import ExperimentConfig, ResolvedExperiment
from vally.spec.diagnostics import adjust, raise_errors
from vally.spec.experiment_file import ReadExperiment, read_experiment_file
from vally.spec.garbage import no_collections
from vally.spec.loader import start_loading
from vally.spec.loading import Loading
from vally.spec.placeholders import Parameters
from vally.spec.project import environment_params
from vally.spec.resolution import Resolution
from vally.spec.variant_findings import positions_of, with_pointer

if TYPE_CHECKING:
    from vally.host import PluginHost


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedExperiment:
    """The outcome of reading one experiment file; its fields mean what those of a LoadedSpec do."""

    config: ExperimentConfig | None
    diagnostics: tuple[Diagnostic, ...]
    used_params: frozenset[str] = frozenset()
    environment_values: Mapping[str, str] = field(default_factory=dict)


def load_experiment_config(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
) -> ExperimentConfig:
    """Load an experiment file without its evals; raises SpecError with all diagnostics when any of them is an error.

    The arguments are those of `load_eval_spec`; the project file is looked up from the directory of the experiment.
    """
    loaded = read_experiment_config(path, params=params, project=project, host=host, environ=environ)
    raise_errors(loaded.diagnostics)
    if loaded.config is None:
        raise SpecError(f"{path}: nothing to load", diagnostics=loaded.diagnostics)
    return loaded.config


@no_collections()
def read_experiment_config(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
    strict: bool = False,
    lint: bool = False,
) -> LoadedExperiment:
    """Read an experiment file with every diagnostic about it; never raises for what it holds.

    What variants set is checked as far as it can be without an eval: keys, types, executors, names of environments.
    """
    parameters = Parameters(params or {}, environ or {})
    loading = start_loading(Path(path), None, project, host, parameters, lint=lint, skill_dirs=False)
    return _loaded(loading, read_experiment_file(loading), strict=strict)


def resolve_experiment(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
    skill_dirs: bool = False,
    settings: Mapping[str, object] | None = None,
) -> ResolvedExperiment:
    """Resolve every eval of an experiment in every variant; raises SpecError when any diagnostic is an error.

    `settings` are keys of `defaults` from the command line, which beat all others; `skill_dirs` says that skills are
    offered where a stimulus declares none.
    """
    resolved = read_experiment(
        path, params=params, project=project, host=host, environ=environ, skill_dirs=skill_dirs, settings=settings
    )
    raise_errors(resolved.diagnostics)
    return resolved


@no_collections()
def read_experiment(
    path: str | Path,
    *,
    params: Mapping[str, str] | None = None,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
    strict: bool = False,
    lint: bool = False,
    skill_dirs: bool = False,
    settings: Mapping[str, object] | None = None,
    content: bytes | None = None,
) -> ResolvedExperiment:
    """Like resolve_experiment with every diagnostic of all files; never raises for what they hold.

    `content` stands for what the experiment file holds.
    """
    parameters = Parameters(params or {}, environ or {})
    loading = start_loading(
        Path(path), None, project, host, parameters, lint=lint, skill_dirs=skill_dirs, content=content
    )
    read = read_experiment_file(loading)
    resolution = None if read is None else Resolution(loading, read, settings or {})
    if resolution is not None:
        resolution.run()
    loaded = _loaded(loading, read, strict=strict)
    return ResolvedExperiment(
        config=loaded.config,
        specs=() if resolution is None else tuple(resolution.specs),
        diagnostics=loaded.diagnostics,
        used_params=loaded.used_params,
        environment_values=loaded.environment_values,
    )


def _loaded(loading: Loading, read: ReadExperiment | None, *, strict: bool) -> LoadedExperiment:
    """What was read and found so far."""
    diagnostics = adjust(_with_pointers(loading, read, loading.collector.ordered()), strict=strict)
    return LoadedExperiment(
        config=None if read is None else replace(read.config, diagnostics=diagnostics),
        diagnostics=diagnostics,
        used_params=frozenset(loading.parameters.mentioned) | environment_params(loading.project),
        environment_values=dict(loading.parameters.from_environment),
    )


def _with_pointers(
    loading: Loading, read: ReadExperiment | None, diagnostics: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Findings at merged trees with the pointers of the file they stand in."""
    positions = {} if read is None else {loading.source.display: positions_of(read.tree)}
    project: dict[tuple[int, int], list[str]] = {}
    for pointer, at in loading.project.positions.items():
        project.setdefault((at.line, at.column), []).append(pointer)
        positions.setdefault(at.file, project)
    for item in diagnostics:
        yield with_pointer(item, positions[item.file]) if item.file in positions else item
