"""The names in a file, read without checking anything: for completion while somebody types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vally.spec.diagnostics import Collector
from vally.spec.files import SPEC_BYTES, read_file
from vally.spec.nodes import MappingNode, ScalarNode, SequenceNode, Source
from vally.spec.reader import read_yaml

if TYPE_CHECKING:
    from vally.host import PluginHost
    from vally.model.evalspec import Project


@dataclass(frozen=True, slots=True)
class Outline:
    """Names of stimuli, and tags as pairs of key and values."""

    stimuli: tuple[str, ...] = ()
    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()


def outline_of(path: Path, *, project: Project, host: Callable[[], PluginHost], environ: Mapping[str, str]) -> Outline:
    """The outline of a spec; only one that makes stimuli from data is read in full, which needs the plugins."""
    tree = _tree(path)
    if tree is None:
        return Outline()
    if tree.get("stimuli_from") is not None:
        return _full_outline(path, project, host(), environ)
    listed = tree.get("stimuli")
    stimuli = (
        [item for item in listed.items if isinstance(item, MappingNode)] if isinstance(listed, SequenceNode) else []
    )
    names = (item.get("name") for item in stimuli)
    tags = [_tags(item) for item in (tree, *stimuli)]
    return Outline(
        tuple(name.text.strip() for name in names if isinstance(name, ScalarNode)),
        tuple(pair for pairs in tags for pair in pairs),
    )


def _full_outline(path: Path, project: Project, host: PluginHost, environ: Mapping[str, str]) -> Outline:
    from vally.spec.loader import read_eval_spec

    spec = read_eval_spec(path, project=project, host=host, environ=environ, lint=True).spec
    if spec is None:
        return Outline()
    pairs = (pair for stimulus in spec.stimuli for pair in stimulus.tags.items())
    tags = tuple((key, (value,) if isinstance(value, str) else tuple(value)) for key, value in pairs)
    return Outline(tuple(stimulus.name for stimulus in spec.stimuli), tags)


def variants_of(path: Path, *, project: Callable[[], Project]) -> tuple[str, ...]:
    """Names of the variants of an experiment file, or of the run directory of an experiment."""
    if path.is_dir() or path.name == "results.jsonl":
        return _variants_of_run(path if path.is_dir() else path.parent)
    from vally.host import PluginHost
    from vally.spec.experiments import read_experiment_config

    tree = _tree(path)
    if tree is None or (tree.get("variants") is None and tree.get("matrix") is None):
        return ()
    config = read_experiment_config(path, project=project(), host=PluginHost.from_objects(), lint=True).config
    return () if config is None else config.variant_names


def _variants_of_run(directory: Path) -> tuple[str, ...]:
    import json

    manifest = directory / "experiment-manifest.json"
    if not manifest.is_file():
        return ()
    names = json.loads(manifest.read_text(encoding="utf-8"))["experiment"]["variantNames"]
    return tuple(name for name in names if isinstance(name, str))


def _tree(path: Path) -> MappingNode | None:
    collector = Collector(muted=True)
    source = Source(path.name, path, path.parent)
    data = read_file(path, source, SPEC_BYTES, collector)
    tree = None if data is None else read_yaml(data, source, collector)
    return tree if isinstance(tree, MappingNode) else None


def _tags(node: MappingNode) -> Iterator[tuple[str, tuple[str, ...]]]:
    tags = node.get("tags")
    for key, value in tags.entries if isinstance(tags, MappingNode) else ():
        items = value.items if isinstance(value, SequenceNode) else [value]
        yield key.text, tuple(item.text for item in items if isinstance(item, ScalarNode))
