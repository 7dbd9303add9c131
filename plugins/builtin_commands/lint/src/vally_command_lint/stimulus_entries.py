"""Grader entries of a stimulus as the cross-checks look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vally import GraderEntry, GraderSpec, LoadedSpec, PluginError, PluginHost, Stimulus, sanitise
from vally_command_lint.codes import finding
from vally_command_lint.findings import Finding, Level

_QUOTED_LENGTH = 80
_NUMBER = re.compile(r"/graders/(\d+)$")


def quoted(text: object) -> str:
    """A value as messages quote it."""
    shown = sanitise(str(text))
    return f"'{shown if len(shown) <= _QUOTED_LENGTH else f'{shown[: _QUOTED_LENGTH - 1]}…'}'"


def is_filled(value: object) -> bool:
    """Whether a text has no placeholder left."""
    return not (isinstance(value, str) and "${" in value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry with its record."""

    written: GraderEntry
    record: GraderSpec
    model: Any

    @property
    def config(self) -> Mapping[str, object]:
        """The config as written."""
        return self.written.config

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of the config model; none without a model."""
        fields: Mapping[str, Any] = {} if self.model is None else self.model.model_fields
        return fields

    def context(self, stimulus: Stimulus) -> str:
        """The place in words."""
        pointer = self.written.pointer or ""
        number = _NUMBER.search(pointer)
        if number is None:
            return f"stimulus '{stimulus.name}'"
        grader = f"grader {int(number[1]) + 1}"
        return grader if pointer == f"/graders/{number[1]}" else f"stimulus '{stimulus.name}', {grader}"

    def pointer(self, *place: str | int) -> str:
        """The pointer of a value of the config, by keys and indexes."""
        base = self.written.pointer or ""
        if not place:
            return base
        # A constraint holds the list itself, not a config with the list.
        steps = place[1:] if self.written.constraint else ("config", *place)
        return base + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


@dataclass
class Entries:
    """Makes entries of a host's graders, and findings of entries."""

    host: PluginHost
    _models: dict[str, tuple[GraderSpec, Any] | None] = field(default_factory=dict)
    _providers: dict[str, tuple[str, str] | None] = field(default_factory=dict)

    def of(self, stimulus: Stimulus) -> list[Entry]:
        """The entries of a stimulus whose type is known."""
        found = []
        for written in stimulus.graders:
            if written.type not in self._models:
                self._models[written.type] = self._known(written.type)
            known = self._models[written.type]
            if known is not None:
                found.append(Entry(written, *known))
        return found

    def _known(self, keyword: str) -> tuple[GraderSpec, Any] | None:
        try:
            record = self.host.get("grader", keyword)
            return (record, self.host.config_model(record)) if isinstance(record, GraderSpec) else None
        except PluginError:
            return None

    def provider(self, constraint: str) -> tuple[str, str] | None:
        """Type and config key of the grader that checks a constraint."""
        if constraint not in self._providers:
            self._providers[constraint] = self._provider(constraint)
        return self._providers[constraint]

    def _provider(self, constraint: str) -> tuple[str, str] | None:
        try:
            record = self.host.constraint_provider(constraint)
        except PluginError:
            return None
        return None if record is None else (record.name, record.constraints[constraint])


@dataclass
class Reports:
    """Findings of one spec, each once although stimuli share entries."""

    loaded: LoadedSpec
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def at_entry(
        self,
        code: str,
        message: str,
        stimulus: Stimulus,
        entry: Entry,
        *place: str | int,
        level: Level | None = None,
        hint: str | None = None,
    ) -> Iterator[Finding]:
        """A finding about a value of the config of an entry."""
        pointer = entry.pointer(*place)
        item = finding(code, message, level=level, hint=hint, pointer=pointer, context=entry.context(stimulus))
        yield from self._placed(item, pointer, entry.written.position)

    def at_stimulus(self, code: str, message: str, stimulus: Stimulus, hint: str | None = None) -> Iterator[Finding]:
        """A finding about a stimulus as a whole."""
        item = finding(code, message, hint=hint, context=f"stimulus '{stimulus.name}'")
        yield from self._placed(item, None, stimulus.position)

    def _placed(self, item: Finding, pointer: str | None, usual: Any) -> Iterator[Finding]:
        key = (item.code, pointer, item.message, item.context)
        if key in self._seen:
            return
        self._seen.add(key)
        redact = self.loaded.redact
        hint, context = (text and redact(text) for text in (item.hint, item.context))
        item = replace(item, message=redact(item.message), hint=hint, context=context)
        at = (self.loaded.position(pointer) if pointer else None) or usual
        yield replace(item, file=at.file, line=at.line, column=at.column) if at is not None else item
