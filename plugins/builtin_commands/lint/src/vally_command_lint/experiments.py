"""Experiment files: what reading and resolving them says, and a baseline that is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vally import ResolvedExperiment, read_experiment
from vally_command_lint.codes import finding
from vally_command_lint.findings import FileReport, Finding, from_diagnostic
from vally_command_lint.specs import SpecLinter

Key = tuple[object, ...]


@dataclass(frozen=True)
class ExperimentLinter:
    """Checks experiment files with the project, plugins and parameters of the specs' linter."""

    specs: SpecLinter
    display: Callable[[Path], str]

    def check(self, path: Path, reported: Sequence[FileReport]) -> FileReport:
        """Everything about one experiment that the reports of its evals do not say already."""
        specs = self.specs
        resolved = read_experiment(
            path, params=specs.params, project=specs.project, host=specs.host, environ=specs.environ, lint=True
        )
        specs.used_params |= resolved.used_params
        said = {_key(item) for report in reported for item in report.findings}
        found = [from_diagnostic(item) for item in resolved.diagnostics]
        found += _loading_baseline(resolved)
        kept = {_key(item): item for item in found if _key(item) not in said}
        return FileReport(kind="experiment", path=self.display(path), findings=tuple(kept.values()))


def _key(item: Finding) -> Key:
    return (item.code, item.file, item.line, item.column, item.message)


def _loading_baseline(resolved: ResolvedExperiment) -> Iterator[Finding]:
    """A baseline that offers skills in an experiment about skills.

    When another variant offers none, the two look swapped. Otherwise versions of a skill may be what is compared.
    """
    config = resolved.config
    if config is None or config.baseline is None or not any("skills" in pointer.split("/") for pointer in config.vary):
        return
    offered = _offered(resolved)
    names = sorted({path.name for path in offered.get(config.baseline, ())})
    if not names:
        return
    empty = next((name for name in config.variant_names if name in offered and not offered[name]), None)
    at = config.baseline_position
    message = f"baseline '{config.baseline}' offers skills: {', '.join(names)}"
    yield finding(
        "baseline-loads-skills",
        message if empty is None else f"{message}; variant '{empty}' offers none",
        level="info" if empty is None else "warning",
        hint=None if empty is None else f"is '{empty}' the baseline?",
        file=config.display_path,
        pointer="/baseline",
        line=None if at is None else at.line,
        column=None if at is None else at.column,
    )


def _offered(resolved: ResolvedExperiment) -> dict[str, set[Path]]:
    """The skills that each variant offers to any stimulus."""
    offered: dict[str, set[Path]] = {}
    for item in resolved.specs:
        skills = offered.setdefault(item.variant, set())
        for stimulus in item.spec.stimuli:
            skills.update(stimulus.merged_environment.skills or ())
    return offered
