"""Graders and constraints that name skills or tools which do not exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vally import (
    EvalSpec,
    ExecutorChoice,
    Stimulus,
    VallyError,
    compile_regex,
    did_you_mean,
    inspect_skill,
)
from vally_command_lint.findings import Finding, Level
from vally_command_lint.stimulus_entries import Entries, Entry, Reports, is_filled, quoted

_ANY_SKILL = "*"
Provider = tuple[str, str]


@dataclass
class NamedItems:
    """Remembers what skills are called and which tools executors give."""

    entries: Entries
    _names: dict[Path, str] = field(default_factory=dict)
    _tools: dict[str, tuple[str, ...] | None] = field(default_factory=dict)

    def skill_findings(self, stimulus: Stimulus, entries: list[Entry], reports: Reports) -> Iterator[Finding]:
        """Skills that are not among those the stimulus declares; expected ones of constraints are the spec layer's."""
        declared = stimulus.merged_environment.skills
        required, rejected = self.entries.provider("expect_skills"), self.entries.provider("reject_skills")
        if not declared or (required is None and rejected is None):
            return
        offered = sorted({self._name(path) for path in declared})
        for entry in entries:
            for provider, level in _levels(required, rejected):
                if entry.written.type != provider[0] or entry.written.constraint == "expect_skills":
                    continue
                for place, name in _texts(entry, provider[1]):
                    if name not in offered and name != _ANY_SKILL:
                        yield from _unknown("skill", name, offered, level, stimulus, entry, reports, place)

    def _name(self, path: Path) -> str:
        if path not in self._names:
            skill, _ = inspect_skill(path)
            self._names[path] = path.name if skill is None else skill.name
        return self._names[path]

    def tool_findings(
        self, spec: EvalSpec, stimulus: Stimulus, entries: list[Entry], reports: Reports
    ) -> Iterator[Finding]:
        """Tools that the executor does not have; nothing is known of those of MCP servers and simulated ones."""
        required, rejected = self.entries.provider("expect_tools"), self.entries.provider("reject_tools")
        if required is None or stimulus.merged_environment.mcp_servers or stimulus.simulation:
            return
        tools = self._tools_of(spec)
        if tools is None:
            return
        for entry in entries:
            for provider, level in _levels(required, rejected):
                if entry.written.type != provider[0]:
                    continue
                for place, pattern in _texts(entry, provider[1]):
                    if not _matches_any(pattern, tools):
                        yield from _unknown("tool", pattern, tools, level, stimulus, entry, reports, place)

    def _tools_of(self, spec: EvalSpec) -> tuple[str, ...] | None:
        choice = spec.defaults.executor or ExecutorChoice()
        key = f"{choice.name} {choice.config!r}"
        if key not in self._tools:
            self._tools[key] = self._ask(choice)
        return self._tools[key]

    def _ask(self, choice: ExecutorChoice) -> tuple[str, ...] | None:
        host = self.entries.host
        try:
            record = host.get("executor", choice.name)
            method = None if record is None else getattr(host.create(record), "tool_names", None)
            if record is None or method is None:
                return None
            names = method(host.parse_config(record, choice.config))
            return None if names is None else tuple(sorted(str(name) for name in names))
        except VallyError:
            return None
        except Exception:  # a plugin may raise anything; what it knows stays unknown
            return None


def _levels(required: Provider | None, rejected: Provider | None) -> Iterator[tuple[Provider, Level]]:
    """What is missing fails a check that requires it; one that rejects it passes for the wrong reason."""
    if required is not None:
        yield required, "warning"
    if rejected is not None:
        yield rejected, "info"


def _texts(entry: Entry, key: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Texts of a list, or the names in its mappings, with their places."""
    value = entry.config.get(key)
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    for index, item in enumerate(items):
        place: tuple[str | int, ...] = (key,) if isinstance(value, str) else (key, index)
        if isinstance(item, Mapping):
            item, place = item.get("name"), (*place, "name")
        if isinstance(item, str) and is_filled(item):
            yield place, item


def _matches_any(pattern: str, names: tuple[str, ...]) -> bool:
    try:
        regex = compile_regex(pattern)
        return any(regex.search(name) for name in names)
    except VallyError:
        return True


def _unknown(
    noun: str,
    name: str,
    known: list[str] | tuple[str, ...],
    level: Level,
    stimulus: Stimulus,
    entry: Entry,
    reports: Reports,
    place: tuple[str | int, ...],
) -> Iterator[Finding]:
    what = "is not among the skills of this stimulus" if noun == "skill" else "matches no tool of the executor"
    hint = did_you_mean(name, known) or f"{noun}s: {', '.join(known)}"
    code = f"unknown-{noun}-in-grader"
    yield from reports.at_entry(code, f"{quoted(name)} {what}", stimulus, entry, *place, level=level, hint=hint)
