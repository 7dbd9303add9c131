"""Finding, loading and filtering the specs that a command works on, and saying what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally.cli.clean_names import with_clean_names
from vally.cli.messages import print_diagnostics, print_error, print_hints, print_warning, say
from vally.cli.selection import (
    SelectionWords,
    candidate_files,
    chosen_suites,
    describe,
    select_stimuli,
    suite_metadata,
    tag_keys,
)
from vally.errors import SpecError

if TYPE_CHECKING:
    from vally.cli.context import CliContext
    from vally.cli.foreign_specs import ForeignSpecs
    from vally.host import PluginHost
    from vally.model.evalspec import Diagnostic, EvalSpec, Project, Suite
    from vally.run.redaction import Redactor
    from vally.spec import LoadedSpec


class SpecSelection:
    """The specs that words such as those of `-e`, `--tag` and `--stimulus` select.

    Call `find_project`, `open_host` and `load`, in this order. `params` are values of placeholders, `has_skill_dir`
    tells that skills are offered from elsewhere, and `lenient` makes warnings of semantic errors. Afterwards
    `diagnostics` holds all findings and `environment_values` the process variables that placeholders used.
    `eval_plugin` names an eval provider for specs of other tools; what it keeps for them is there until `close`.
    """

    def __init__(
        self,
        context: CliContext,
        words: SelectionWords,
        *,
        params: Mapping[str, str] | None = None,
        has_skill_dir: bool = False,
        lenient: bool = False,
        eval_plugin: str | None = None,
    ) -> None:
        self._context = context
        self._words = words
        self._params = dict(params or {})
        self._has_skill_dir = has_skill_dir
        self._lenient = lenient
        self._eval_plugin = eval_plugin
        self._foreign: ForeignSpecs | None = None
        self._loaded: list[tuple[Path, EvalSpec]] = []
        self.diagnostics: list[Diagnostic] = []
        self.environment_values: dict[str, str] = {}
        self.project: Project

    def find_project(self) -> Project:
        """Find and read the project file; raises `SpecError` when it cannot be used."""
        from vally.spec import find_project

        context = self._context
        start = self._base() or context.cwd
        self.project = find_project(start, context.cwd, context.config_path, context.no_config)
        self.diagnostics += self.project.diagnostics
        if any(item.level == "error" for item in self.project.diagnostics):
            raise SpecError("the project file cannot be used", diagnostics=self.project.diagnostics)
        return self.project

    def open_host(self) -> PluginHost | None:
        """Load the plugins of project and command line; prints what failed and returns None then."""
        host = self._context.host(self.project, base=self._base())
        problems = host.problems()
        for problem in problems:
            print_error(problem)
        return None if problems else host

    def _base(self) -> Path | None:
        if not self._words.specs:
            return None
        first = self._context.cwd / self._words.specs[0]
        return first if first.is_dir() else first.parent if first.parent.is_dir() else self._context.cwd

    def load(self, host: PluginHost) -> list[EvalSpec] | None:
        """The specs with the stimuli that are selected; prints all findings and returns None when one is an error."""
        self._foreign = self._provider(host)
        found = candidate_files(self._words, self.project, self._context.cwd)
        self.diagnostics += found.diagnostics
        used: set[str] = set()
        for path in found.paths:
            loaded = self._read(path, host)
            self.environment_values |= loaded.environment_values
            used |= loaded.used_params
            self.diagnostics += self._softened(loaded.spec, loaded.diagnostics)
            if loaded.spec is not None:
                self._loaded.append((path, with_clean_names(loaded.spec, self._redactor())))
        self._unused_parameters(used)
        print_diagnostics(self.diagnostics)
        if any(item.level == "error" for item in self.diagnostics):
            return None
        return self._selected(found.suites_of if self._words.suites else None)

    def _provider(self, host: PluginHost) -> ForeignSpecs | None:
        named = self._eval_plugin or self.project.eval_provider
        if named is None:
            return None
        from vally.cli.foreign_specs import ForeignSpecs
        from vally.records import EvalProviderSpec

        cwd = self._context.cwd
        bases = (self._base() or cwd, cwd) if self._eval_plugin else (self.project.root,)
        record = host.resolve_one("eval-provider", named, bases=bases)
        assert isinstance(record, EvalProviderSpec)
        return ForeignSpecs(host, record, self.project, self._params)

    def _read(self, path: Path, host: PluginHost) -> LoadedSpec:
        from vally.spec import read_eval_spec, read_foreign_spec

        skill_dirs = self._has_skill_dir
        foreign = None if self._foreign is None else self._foreign.load(path)
        if foreign is None:
            return read_eval_spec(
                path,
                params=self._params,
                project=self.project,
                host=host,
                environ=self._context.environ,
                skill_dirs=skill_dirs,
            )
        for warning in foreign.warnings:
            print_warning(f"{path.name}: {warning}")
        return read_foreign_spec(foreign, path, project=self.project, host=host, skill_dirs=skill_dirs)

    def close(self) -> None:
        """Remove what an eval provider keeps for its specs."""
        if self._foreign is not None:
            self._foreign.close()

    def _redactor(self) -> Redactor:
        from vally.run.redaction import Redactor

        redactor = Redactor(self._context.environ, parameters=self._params)
        for name, value in self.environment_values.items():
            redactor.add(name, value)
        return redactor

    def _softened(self, spec: EvalSpec | None, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        # Only a spec that could be built may run in spite of its errors.
        if not self._lenient or spec is None:
            return list(diagnostics)
        return [replace(item, level="warning") if item.level == "error" else item for item in diagnostics]

    def _unused_parameters(self, used: set[str]) -> None:
        from vally.model.evalspec import Diagnostic

        self.diagnostics += [
            Diagnostic(code="unused-parameter", level="warning", message=f"--param {name} is not used by any file")
            for name in self._params
            if name not in used
        ]

    def _selected(self, suites_of: Mapping[Path, list[Suite]] | None) -> list[EvalSpec]:
        hits: dict[str, int] = {}
        selected = []
        for path, spec in self._loaded:
            suites = None if suites_of is None else suites_of.get(path, [])
            kept = select_stimuli(spec, self._words, suites, hits)
            if kept.stimuli:
                selected.append(kept)
            elif self._context.display.verbose:
                say(f"{spec.display_path}: no stimulus selected")
        for pattern in self._words.patterns:
            if not hits.get(pattern):
                print_warning(f"--stimulus '{pattern}' matches nothing")
        return selected

    def print_nothing_selected(self) -> None:
        """Say that no stimulus matches, with the filters and what could be filtered by."""
        keys = tag_keys(spec for _, spec in self._loaded)
        say("error: no stimulus matches")
        print_hints([*describe(self._words), f"tag keys: {', '.join(keys) or 'none'}"])

    def suite_metadata(self) -> Mapping[str, Mapping[str, object]]:
        """Metadata of the chosen suites by name."""
        return suite_metadata(chosen_suites(self.project, self._words.suites))
