"""Parts of a spec for other programs: environments by name, stimuli by name, the messages of a stimulus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vally.errors import SpecError
from vally.model.evalspec import Environment, EvalSpec, Project, Stimulus
from vally.spec.diagnostics import Collector, Place, raise_errors
from vally.spec.environments import merge_layers, read_layer
from vally.spec.loading import Loading
from vally.spec.nodes import ScalarNode, Source
from vally.spec.placeholders import ENVIRONMENT_RULE, Parameters
from vally.spec.plain_nodes import nodes_of
from vally.text.suggest import did_you_mean

if TYPE_CHECKING:
    from vally.host import PluginHost


def resolve_environment(
    environment: str | Mapping[str, object],
    *,
    project: Project,
    base_dir: str | Path | None = None,
    params: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    host: PluginHost | None = None,
) -> Environment:
    """An environment of the project file by name, or one given as a mapping with spec keys, with absolute paths.

    Relative paths of a mapping start from `base_dir`, by default the project's root. Raises SpecError.
    """
    base = Path(base_dir or project.root).absolute()
    source = Source("<environment>", base / "environment", base)
    loading = Loading(
        source=source,
        collector=Collector(),
        project=project,
        host=host if host is not None else _no_plugins(),
        parameters=Parameters(params or {}, environ or {}),
    )
    if isinstance(environment, str):
        node: object = ScalarNode(source, 1, 1, environment, '"')
    else:
        node = loading.filler.fill(nodes_of(environment, source), ENVIRONMENT_RULE)
    layer = read_layer(loading, node, Place(label="environment"))  # type: ignore[arg-type]  # both are nodes
    raise_errors(loading.collector.ordered())
    return merge_layers(loading, layer).environment


def _no_plugins() -> PluginHost:
    from vally.host import PluginHost

    return PluginHost.from_objects()


def resolve_stimulus(spec: EvalSpec, name: str) -> Stimulus:
    """The effective stimulus of a name; raises SpecError with near matches."""
    for stimulus in spec.stimuli:
        if stimulus.name == name:
            return stimulus
    hint = did_you_mean(name, [stimulus.name for stimulus in spec.stimuli])
    error = SpecError(f"no stimulus named '{name}' in {spec.display_path}")
    error.hints = (hint,) if hint else ()
    raise error


def stimulus_prompts(stimulus: Stimulus) -> tuple[str, ...]:
    """The user messages of a stimulus in order; one without `turns`."""
    return stimulus.turns
