"""Resolving the evals of an experiment in all its variants, and comparing the variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vally.model.evalspec import Diagnostic
from vally.model.experiment import ResolvedSpec
from vally.spec.building import plain_defaults
from vally.spec.diagnostics import has_errors, order
from vally.spec.drift import Compared, check_drift, is_used
from vally.spec.effective import EFFECTIVE
from vally.spec.experiment_file import ReadExperiment
from vally.spec.hashing import hash_of, portable, portable_environment, portable_spec
from vally.spec.loader import start_loading
from vally.spec.loading import Loading
from vally.spec.nodes import Source
from vally.spec.plain_nodes import nodes_of
from vally.spec.pointers import tokens_of
from vally.spec.settings import Setting
from vally.spec.variant_findings import VariantFindings
from vally.spec.variants import ReadVariant
from vally.spec.varied import VariedDefaults, VariedEval, VariedSpec, VariedStimuli, read_varied
from vally.text.durations import format_duration


@dataclass(slots=True)
class Resolution:
    """Resolves an experiment that was read; `settings` are keys of `defaults` that beat all others.

    What is found goes to the collector of `loading`, the load of the experiment file.
    """

    loading: Loading
    read: ReadExperiment
    settings: Mapping[str, object]
    specs: list[ResolvedSpec] = field(default_factory=list)
    compared: list[list[Compared]] = field(default_factory=list)
    vary_is_known: bool = True
    """Without it every difference would be a finding."""

    def run(self) -> None:
        """Resolve all evals."""
        found = self.loading.collector.ordered()
        known = {(item.code, item.line, item.column) for item in found}
        self.vary_is_known = not any(
            item.level == "error" and (item.pointer or "").startswith("/vary") for item in found
        )
        last = self._last()
        for path in self.read.config.eval_files:
            for item in self._eval(path, last):
                # What the file itself says wrong was reported with it.
                if item.file != self.loading.source.display or (item.code, item.line, item.column) not in known:
                    self.loading.collector.keep(item)
        self._check_vary()

    def _last(self) -> list[Setting]:
        """The settings of the command line."""
        if not self.settings:
            return []
        source = Source("<command line>", self.loading.source.path, Path.cwd())
        node = nodes_of(self.settings, source)
        return [Setting("defaults", (), node, node)]

    def _eval(self, path: Path, last: Sequence[Setting]) -> Iterable[Diagnostic]:
        """Resolve one eval; the findings."""
        whole = self.loading
        loading = start_loading(
            path, None, whole.project, whole.host, lint=whole.collector.lint, skill_dirs=whole.skill_dirs
        )
        loading.parameters, loading.facts = whole.parameters, whole.facts
        varied = read_varied(loading)
        common = loading.collector.ordered()
        if varied is None:
            return common
        findings = VariantFindings()
        maker = _Maker(varied, common)
        compared = []
        first = [self.read.overrides] if self.read.overrides is not None else []
        for variant in self.read.variants:
            spec = varied.apply([*first, *variant.settings, *last])
            findings.add(variant.variant.name, spec.diagnostics)
            self.specs.append(maker.resolved(variant.variant.name, spec))
            if not has_errors(spec.diagnostics):
                compared.append(maker.compared(variant, spec))
        if len(compared) > 1:
            self._compare(compared, loading.source.display)
        return (*common, *findings.result(len(self.read.variants)))

    def _compare(self, compared: list[Compared], display: str) -> None:
        vary = [tokens_of(item.pointer) for item in self.read.vary]
        if self.vary_is_known:
            check_drift(compared, vary, self.loading.project.root, self.loading.collector, f"eval {display}")
        self.compared.append(compared)

    def _check_vary(self) -> None:
        """Warn about pointers that no eval has any use for; mistakes elsewhere may hide what differs."""
        if self.loading.collector.has_errors or not self.compared:
            return
        for item in self.read.vary:
            steps = tokens_of(item.pointer)
            if not any(is_used(steps, variants) for variants in self.compared):
                self.loading.collector.add("vary-unused", item.node, item.place, path=item.pointer)


@dataclass(slots=True)
class _Maker:
    """Makes the outcomes for one eval; `common` are the findings that all variants share."""

    varied: VariedEval
    common: tuple[Diagnostic, ...]
    hash: str = ""
    shown: dict[int, tuple[VariedStimuli, dict[str, Any]]] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The directory that recorded paths start from."""
        return self.varied.loading.project.root

    def resolved(self, variant: str, spec: VariedSpec) -> ResolvedSpec:
        """The outcome for one variant."""
        if not self.hash:
            self.hash = hash_of(portable_spec(self.varied.apply(()).spec.document, self.root))
        defaults = portable(_defaults(spec.defaults), self.root)
        environments = {key: portable_environment(layer.shown, self.root) for key, layer in spec.stimuli.layers.items()}
        return ResolvedSpec(
            variant=variant,
            spec=replace(spec.spec, diagnostics=order((*self.common, *spec.diagnostics))),
            eval_hash=self.hash,
            config_hash=hash_of({"defaults": defaults, **environments}),
            defaults=defaults,
            environments=environments,
            stimulus_environments=self._stimulus_environments(spec.stimuli),
        )

    def _stimulus_environments(self, stimuli: VariedStimuli) -> dict[str, Any]:
        if id(stimuli) not in self.shown:
            made: dict[int, dict[str, Any]] = {}
            by_name = {}
            for item in stimuli.effective:
                merged = item.environments[EFFECTIVE]
                if id(merged) not in made:
                    made[id(merged)] = portable_environment(merged.shown, self.root)
                by_name[item.stimulus.name] = made[id(merged)]
            self.shown[id(stimuli)] = (stimuli, by_name)
        return self.shown[id(stimuli)][1]

    def compared(self, variant: ReadVariant, spec: VariedSpec) -> Compared:
        """What drift is looked for in."""
        layers = spec.stimuli.layers
        return Compared(
            name=variant.variant.name,
            node=variant.node,
            parts={"defaults": _defaults(spec.defaults), **{key: layer.shown for key, layer in layers.items()}},
            stimuli=[item.environments[EFFECTIVE].shown for item in spec.stimuli.effective],
            trees={"defaults": spec.defaults.tree, **spec.stimuli.trees},
            nodes=[item.parts.read.section.node for item in spec.stimuli.effective],
        )


def _defaults(defaults: VariedDefaults) -> dict[str, Any]:
    """Defaults in one form: `90s` and `1m30s` are the same, and so are an executor's name and a mapping with it."""
    if defaults.section is None:
        return {}
    made = plain_defaults(defaults.section)
    for key, ms in (
        ("timeout", defaults.values.timeout_ms),
        ("max_agent_duration", defaults.values.max_agent_duration_ms),
    ):
        if key in made and ms is not None:
            made[key] = format_duration(ms)
    if isinstance(made.get("executor"), str):
        made["executor"] = {"name": made["executor"]}
    if isinstance(made.get("executor"), dict):
        made["executor"].setdefault("config", {})
    return made
