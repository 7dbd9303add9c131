"""Everything that `vally lint` checks, as a function."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vally import EvalProviderSpec, PluginHost, Project, discover_evals, expand_spec_words, find_project
from vally_command_lint.dependency_scan import dependency_keys, unused_entries
from vally_command_lint.entry_files import read_allowed, read_domains
from vally_command_lint.experiments import ExperimentLinter
from vally_command_lint.findings import FileReport, Finding, LintReport, SkillReport, from_diagnostic
from vally_command_lint.project_lint import check_project, experiment_files, project_skill_directories
from vally_command_lint.severities import Severities
from vally_command_lint.skill_lint import SkillLinter, skill_directories
from vally_command_lint.specs import SpecLinter


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """What to check. With neither `paths` nor `specs` nor `whole_project` the skills below the current directory."""

    paths: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    whole_project: bool = False
    params: Mapping[str, str] = field(default_factory=dict)
    known_domains: Path | None = None
    allowed_dependencies: Path | None = None
    severities: Severities = field(default_factory=Severities)


def lint(
    options: LintOptions,
    *,
    cwd: Path,
    project: Project | None = None,
    host: PluginHost | None = None,
    environ: Mapping[str, str] | None = None,
    provider: EvalProviderSpec | None = None,
) -> LintReport:
    """Check skills, specs and project files; nothing is executed apart from plugins that check their configs.

    `environ` are the variables that placeholders may use. Raises VallyError for paths that do not exist and for
    malformed files of domains or allowed dependencies.
    """
    chosen = project or find_project(cwd, cwd)
    linter = _Linter(options, cwd, chosen, host or PluginHost(), environ or {}, provider)
    with _fewer_collections():
        return linter.report()


@contextlib.contextmanager
def _fewer_collections() -> Iterator[None]:
    """A spec is many small objects that all live until it is checked; looking at them again and again finds nothing."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 50_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass
class _Linter:
    options: LintOptions
    cwd: Path
    project: Project
    host: PluginHost
    environ: Mapping[str, str]
    provider: EvalProviderSpec | None

    def report(self) -> LintReport:
        options, severities = self.options, self.options.severities
        skills, unused = self._skills()
        specs = SpecLinter(self.project, self.host, options.params, self.environ, self.provider)
        evals = self._evals(specs)
        files = self._project(specs, evals) if options.whole_project else []
        general = [*self._of_the_project(), *unused, *self._unused_parameters(specs)]
        return LintReport(
            skills=tuple(map(severities.skill, skills)),
            evals=tuple(map(severities.file, evals)),
            project=tuple(map(severities.file, files)),
            findings=severities.apply(general),
            strict=severities.strict,
            looked_for=self._kinds(),
        )

    def display(self, path: Path) -> str:
        """A path as messages name it."""
        for root in (self.project.root, self.cwd):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.as_posix()

    def _kinds(self) -> frozenset[str]:
        options = self.options
        if options.whole_project:
            return frozenset({"skills", "evals", "project"})
        kinds = {"evals"} if options.specs else {"skills"}
        return frozenset(kinds | ({"skills"} if options.paths else set()))

    def _skills(self) -> tuple[list[SkillReport], list[Finding]]:
        options = self.options
        words = options.paths or (() if options.specs or options.whole_project else (".",))
        directories = skill_directories(self.cwd, words)
        if options.whole_project:
            found = project_skill_directories(self.project)
            directories = sorted({*directories, *found}, key=lambda path: path.as_posix())
        domain_file, allow_file = options.known_domains, options.allowed_dependencies
        domains = None if domain_file is None else read_domains(domain_file, self.display(domain_file))
        allowed = None if allow_file is None else read_allowed(allow_file, self.display(allow_file))
        reports, sources = SkillLinter(self.display, domains, allowed).check(directories)
        if allow_file is None or allowed is None:
            return reports, []
        return reports, list(unused_entries(allowed, dependency_keys(sources), self.display(allow_file)))

    def _evals(self, linter: SpecLinter) -> list[FileReport]:
        reports: dict[Path, FileReport] = {}
        missing: list[FileReport] = []
        names = self.project
        if self.provider is not None:
            names = replace(names, eval_filenames=(*names.eval_filenames, *self.provider.patterns))
        for word in self.options.specs:
            paths, diagnostics = expand_spec_words([word], self.cwd, names)
            if diagnostics:
                findings = [replace(from_diagnostic(item), file=word) for item in diagnostics]
                missing.append(FileReport(kind="eval", path=word, findings=tuple(findings)))
            self._check(paths, linter, reports)
        if self.options.whole_project:
            self._check(discover_evals(self.project)[0], linter, reports)
        return [*reports.values(), *missing]

    def _check(self, paths: Sequence[Path], linter: SpecLinter, reports: dict[Path, FileReport]) -> None:
        for path in paths:
            if path not in reports:
                reports[path] = linter.check(path, self.display(path))

    def _project(self, specs: SpecLinter, evals: Sequence[FileReport]) -> list[FileReport]:
        reports = list(check_project(self.project, self.display))
        experiments = ExperimentLinter(specs, self.display)
        for path in experiment_files(self.project.root):
            reports.append(experiments.check(path, [*evals, *reports]))
        return reports

    def _of_the_project(self) -> list[Finding]:
        """What is wrong with the project file that everything was read with, where it is not checked itself."""
        if self.options.whole_project:
            return []
        return [from_diagnostic(item) for item in self.project.diagnostics]

    def _unused_parameters(self, linter: SpecLinter) -> list[Finding]:
        return [
            Finding(code="unused-parameter", level="warning", message=f"--param {name} is not used by any file")
            for name in self.options.params
            if name not in linter.used_params
        ]
