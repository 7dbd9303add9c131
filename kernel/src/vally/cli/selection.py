"""Which stimuli of which specs run: `-e`, suites, tags and stimulus patterns intersect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vally.cli.name_patterns import is_stimulus_named
from vally.errors import VallyError

if TYPE_CHECKING:
    from vally.model.evalspec import Diagnostic, EvalSpec, Project, Suite


@dataclass(slots=True, kw_only=True)
class SelectionWords:
    """The selection options as given."""

    specs: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def tag_filter(self) -> dict[str, tuple[str, ...]]:
        """All `--tag` options combined: several uses of one key add values."""
        combined: dict[str, tuple[str, ...]] = {}
        for key, values in self.tags:
            combined[key] = (*combined.get(key, ()), *values)
        return combined


@dataclass(slots=True)
class Candidates:
    """Files that may hold selected stimuli. `suites_of` maps a file to the suites it was chosen by."""

    paths: list[Path] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    suites_of: dict[Path, list[Suite]] = field(default_factory=dict)


def chosen_suites(project: Project, names: Sequence[str]) -> list[Suite]:
    """The suites of the given names; raises `VallyError` for an unknown one."""
    from vally.text.suggest import did_you_mean

    suites = []
    for name in names:
        if name not in project.suites:
            file = project.path.name if project.path else ".vally.yaml"
            hints = [did_you_mean(name, project.suites) or "", f"suites: {', '.join(sorted(project.suites)) or 'none'}"]
            raise VallyError(
                f"no suite named '{name}' in {file}", where="--suite", hints=[hint for hint in hints if hint]
            )
        suites.append(project.suites[name])
    return suites


def candidate_files(words: SelectionWords, project: Project, cwd: Path) -> Candidates:
    """Files of `-e`, else of the suites, else those that are discovered; with the suites that may use each."""
    from vally.spec import discover_evals, expand_spec_words, suite_files

    suites = chosen_suites(project, words.suites)
    found = Candidates()
    if words.specs:
        found.paths, diagnostics = expand_spec_words(words.specs, cwd, project)
        found.diagnostics += diagnostics
    per_suite: list[tuple[Suite, set[Path] | None]] = []
    for suite in suites:
        if suite.evals is None and words.specs:
            per_suite.append((suite, None))
            continue
        paths, diagnostics = suite_files(project, suite)
        found.diagnostics += diagnostics
        per_suite.append((suite, set(paths)))
        if not words.specs:
            found.paths += paths
    if not words.specs and not suites:
        found.paths, diagnostics = discover_evals(project)
        found.diagnostics += diagnostics
    found.paths = list(dict.fromkeys(found.paths))
    if suites:
        for path in found.paths:
            found.suites_of[path] = [suite for suite, paths in per_suite if paths is None or path in paths]
        found.paths = [path for path in found.paths if found.suites_of[path]]
    return found


def select_stimuli(
    spec: EvalSpec, words: SelectionWords, suites: Sequence[Suite] | None, hits: dict[str, int]
) -> EvalSpec:
    """The spec with the stimuli that match; `hits` counts matches per `--stimulus` pattern.

    `suites` are those the file was chosen by, or None without `--suite`; several are a union.
    """
    from vally.spec import matches_filter

    tag_filter = words.tag_filter
    kept = [
        stimulus
        for stimulus in spec.stimuli
        if matches_filter(stimulus.tags, tag_filter)
        and (suites is None or any(matches_filter(stimulus.tags, suite.filter) for suite in suites))
        and _name_matches(spec.name, stimulus.name, words.patterns, hits)
    ]
    return spec if len(kept) == len(spec.stimuli) else replace(spec, stimuli=tuple(kept))


def _name_matches(eval_name: str, name: str, patterns: Iterable[str], hits: dict[str, int]) -> bool:
    positive = [pattern for pattern in patterns if not pattern.startswith("!")]
    included = not positive
    for pattern in positive:
        if is_stimulus_named(pattern, eval_name, name):
            hits[pattern] = hits.get(pattern, 0) + 1
            included = True
    excluded = False
    for pattern in patterns:
        if pattern.startswith("!") and is_stimulus_named(pattern[1:], eval_name, name):
            hits[pattern] = hits.get(pattern, 0) + 1
            excluded = True
    return included and not excluded


def tag_keys(specs: Iterable[EvalSpec]) -> list[str]:
    """All tag keys of the stimuli of some specs, for the message that nothing matched."""
    return sorted({key for spec in specs for stimulus in spec.stimuli for key in stimulus.tags})


def describe(words: SelectionWords) -> list[str]:
    """The filters in words, for the message that nothing matched."""
    lines: list[str] = []
    if words.suites:
        lines.append(f"suites: {', '.join(words.suites)}")
    lines += [f"tag: {key}={','.join(values)}" for key, values in words.tag_filter.items()]
    if words.patterns:
        lines.append(f"stimulus: {', '.join(words.patterns)}")
    return lines


def suite_metadata(suites: Iterable[Suite]) -> Mapping[str, Mapping[str, object]]:
    """Metadata of the chosen suites by name."""
    return {suite.name: suite.metadata for suite in suites}
