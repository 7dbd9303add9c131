"""Eval specs: what loading them says, and the cross-checks of their stimuli."""

from __future__ import annotations

import asyncio
import inspect
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vally import (
    EvalProviderSpec,
    LoadedSpec,
    PluginHost,
    Project,
    ProviderContext,
    VallyError,
    compile_glob,
    described,
    read_eval_spec,
    read_foreign_spec,
)
from vally_command_lint.contradictions import Contradictions
from vally_command_lint.findings import FileReport, Finding, from_diagnostic
from vally_command_lint.named_items import NamedItems
from vally_command_lint.outcomes import Outcomes
from vally_command_lint.pattern_checks import pattern_findings
from vally_command_lint.stimulus_entries import Entries, Reports

# What these are about is missing, so nothing can be said about what names it.
_INCOMPLETE = frozenset({"skill-not-found", "unknown-environment"})


@dataclass
class SpecLinter:
    """Checks specs one after the other; `provider` reads foreign ones."""

    project: Project
    host: PluginHost
    params: Mapping[str, str]
    environ: Mapping[str, str]
    provider: EvalProviderSpec | None = None
    used_params: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._entries = Entries(self.host)
        self._named = NamedItems(self._entries)
        self._outcomes = Outcomes(self._entries)
        self._contradictions = Contradictions(self._entries)

    def check(self, path: Path, display: str) -> FileReport:
        """Everything about one spec, by position."""
        try:
            loaded = self._load(path)
        except VallyError as error:
            failed = Finding(code="plugin-load-failed", level="error", message=error.message, file=display)
            return FileReport(kind="eval", path=display, findings=(failed,))
        self.used_params |= loaded.used_params
        findings = [from_diagnostic(item) for item in loaded.diagnostics]
        crossed = sorted(self.cross_checks(loaded), key=_rank)
        if crossed:
            findings = sorted([*findings, *crossed], key=_rank)
        return FileReport(kind="eval", path=display, findings=tuple(findings))

    def _load(self, path: Path) -> LoadedSpec:
        if self.provider is not None and _is_named(path, self.provider.patterns):
            # What the provider puts into its scratch directory is looked at while the spec is read.
            with tempfile.TemporaryDirectory(prefix="vally-lint-") as scratch:
                foreign = _Foreign(self.host, self.provider, self.project, self.params).load(path, Path(scratch))
                if foreign is not None:
                    return read_foreign_spec(foreign, path, project=self.project, host=self.host, lint=True)
        return read_eval_spec(
            path, params=self.params, project=self.project, host=self.host, environ=self.environ, lint=True
        )

    def cross_checks(self, loaded: LoadedSpec) -> Iterator[Finding]:
        """Findings about stimuli that load, but hardly do what they were written for."""
        spec = loaded.spec
        if spec is None:
            return
        reports = Reports(loaded)
        codes = {item.code for item in loaded.diagnostics}
        sound = not any(item.level == "error" for item in loaded.diagnostics)
        for stimulus in spec.stimuli:
            entries = self._entries.of(stimulus)
            yield from pattern_findings(stimulus, entries, reports)
            yield from self._contradictions.findings(stimulus, entries, reports)
            if codes.isdisjoint(_INCOMPLETE):
                yield from self._named.skill_findings(stimulus, entries, reports)
            yield from self._named.tool_findings(spec, stimulus, entries, reports)
            if sound:
                yield from self._outcomes.findings(spec, stimulus, entries, reports)


def _rank(item: Finding) -> tuple[object, ...]:
    return (item.code == "more-diagnostics", item.file or "", item.line or 0, item.column or 0, item.code)


def _is_named(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(compile_glob(pattern, dotfiles=True).match(path.name, is_dir=False) for pattern in patterns)


@dataclass
class _Foreign:
    """Reads a spec of another tool."""

    host: PluginHost
    record: EvalProviderSpec
    project: Project
    params: Mapping[str, str]

    def load(self, path: Path, scratch: Path) -> Any:
        """The foreign spec, or None when the provider does not recognise it. Raises VallyError."""
        provider = self.host.create(self.record)
        try:
            if not provider.detect(path):
                return None
            context = ProviderContext(
                params=self.params,
                project_dir=self.project.root,
                scratch_dir=scratch,
                log=logging.getLogger("vally.lint"),
            )
            return asyncio.run(_settled(provider.load(path, context)))
        except VallyError:
            raise
        except Exception as error:
            raise VallyError(f"plugin '{self.record.name}': {described(error)}") from error


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
