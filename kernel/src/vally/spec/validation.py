"""Checking a spec that was loaded before against other plugins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vally.model.evalspec import Diagnostic, EvalSpec, GraderEntry, Position, Project, Stimulus
from vally.spec.defaults import check_executor
from vally.spec.diagnostics import Collector, Place, has_errors
from vally.spec.grader_entries import check_turns, recheck
from vally.spec.loading import Loading
from vally.spec.nodes import MappingNode, Source
from vally.spec.read_entry import ReadEntry
from vally.spec.scoring import WeightKey, check_weights

if TYPE_CHECKING:
    from vally.host import PluginHost


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a check found; `valid` means that nothing was an error."""

    valid: bool
    diagnostics: tuple[Diagnostic, ...]


def validate_eval_spec(
    spec: EvalSpec, *, registry: PluginHost, executor_registry: PluginHost | None = None
) -> ValidationReport:
    """Check graders, weights and the executor's config of a spec against the plugins of a host.

    `executor_registry` is the host that knows executors, by default the same. Diagnostics stand at graders and
    stimuli; what only the file can tell (keys, placeholders, paths) was checked when it was loaded.
    """
    collector = Collector()
    effective = [list(_checked(_loading(spec, registry, collector), stimulus)) for stimulus in spec.stimuli]
    weights = [
        WeightKey(name, weight, None, Place("/scoring/weights").key(name))
        for name, weight in spec.scoring.weights.items()
    ]
    check_weights(weights, registry.records("grader"), effective, collector)
    if spec.defaults.executor is not None:
        loading = _loading(spec, executor_registry or registry, collector)
        check_executor(loading, spec.defaults.executor, _node(loading, None), Place("/defaults/executor"))
    diagnostics = collector.ordered()
    return ValidationReport(not has_errors(diagnostics), diagnostics)


def _loading(spec: EvalSpec, host: PluginHost, collector: Collector) -> Loading:
    source = Source(spec.display_path, spec.path, spec.spec_dir)
    return Loading(source=source, collector=collector, project=Project(root=spec.spec_dir), host=host)


def _node(loading: Loading, position: Position | None) -> MappingNode:
    at = position or Position(file=loading.source.display, line=1, column=1)
    return MappingNode(loading.source, at.line, at.column, [])


def _checked(loading: Loading, stimulus: Stimulus) -> Iterator[ReadEntry]:
    for number, written in enumerate(stimulus.graders, 1):
        entry = _entry(loading, written, f"stimulus '{stimulus.name}', grader {number}")
        recheck(loading, entry)
        check_turns(loading, entry, len(stimulus.turns), entry.place)
        yield entry


def _entry(loading: Loading, written: GraderEntry, context: str) -> ReadEntry:
    return ReadEntry(
        node=_node(loading, written.position),
        place=Place(written.pointer or "", "grader", context),
        type=written.type,
        config=written.config,
        name=written.name,
        turn=written.turn,
        scope=written.scope,
        required=written.required,
        weight=written.weight,
        constraint=written.constraint,
    )
