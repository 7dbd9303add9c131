"""The same thing required by one grader of a stimulus and disallowed by another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vally import LoadedSpec, Stimulus, canonical_json
from vally_command_lint.findings import Finding
from vally_command_lint.stimulus_entries import Entries, Entry, Reports, is_filled, quoted

_ANY = "*"
_ALL = "all"
Place = tuple[str | int, ...]


@dataclass
class Contradictions:
    """Knows which of a host's keywords are the negation of another, and which skills are any skill."""

    entries: Entries

    def findings(self, stimulus: Stimulus, entries: list[Entry], reports: Reports) -> Iterator[Finding]:
        """Pairs of entries that cannot both pass; each is reported at the second one."""
        groups: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            groups[self._keyword(entry)].append(entry)
        for group in groups.values():
            if len(group) > 1:
                yield from self._negated(stimulus, group, reports)
                yield from self._listed(stimulus, group, reports)

    def _keyword(self, entry: Entry) -> str:
        """The keyword of which this one is the negation, or itself."""
        plain = entry.written.type.replace("-not-", "-", 1)
        known = plain != entry.written.type and "negate" in entry.fields and self.entries.host.get("grader", plain)
        return plain if known else entry.written.type

    def _negated(self, stimulus: Stimulus, group: list[Entry], reports: Reports) -> Iterator[Finding]:
        seen: dict[str, tuple[bool, Entry]] = {}
        for entry in group:
            if "negate" not in entry.fields or not all(map(is_filled, entry.config.values())):
                continue
            asked = {key: value for key, value in entry.config.items() if key != "negate"}
            key = canonical_json([asked, entry.written.turn, entry.written.scope or _ALL])
            negated = entry.config.get("negate") is True or "-not-" in entry.written.type
            other = seen.setdefault(key, (negated, entry))
            if other[0] != negated:
                what = next((value for value in reversed(asked.values()) if isinstance(value, str)), entry.written.type)
                yield from self._report(str(what), stimulus, other[1], entry, (), reports)

    def _listed(self, stimulus: Stimulus, group: list[Entry], reports: Reports) -> Iterator[Finding]:
        entries = [entry for entry in group if {"required", "disallowed"} <= entry.fields.keys()]
        shapes = {tuple(sorted(item)) for entry in entries for _, item in _items(entry, "disallowed")}
        asked: dict[str, tuple[Entry, Mapping[str, object]]] = {}
        forbidden: dict[str, Entry] = {}
        for entry in entries:
            wanted = [
                (place, item, list(self._forbidden_by(entry, item, shapes)))
                for place, item in _items(entry, "required")
            ]
            unwanted = [(place, self._key(entry, item)) for place, item in _items(entry, "disallowed")]
            # One finding for each way is enough to find the entry.
            for place, item, keys in wanted:
                if first := next((forbidden[key] for key in keys if key in forbidden), None):
                    yield from self._report(_name(item), stimulus, first, entry, place, reports)
                    break
            for place, key in unwanted:
                if key in asked:
                    before, item = asked[key]
                    yield from self._report(_name(item), stimulus, before, entry, place, reports)
                    break
            for _, item, keys in wanted:
                for key in keys:
                    asked.setdefault(key, (entry, item))
            for _, key in unwanted:
                forbidden.setdefault(key, entry)

    def _key(self, entry: Entry, unwanted: Mapping[str, object]) -> str:
        """What a disallowed item rules out, in which turn and for which agents."""
        any_skill = unwanted == {"name": _ANY} and self._skills() == (entry.written.type, "disallowed")
        return canonical_json([entry.written.turn, entry.written.scope or _ALL, {} if any_skill else unwanted])

    def _forbidden_by(
        self, entry: Entry, wanted: Mapping[str, object], shapes: Iterable[tuple[str, ...]]
    ) -> Iterator[str]:
        """Keys of the disallowed items that rule out a required one: those that ask for less, and look at no less."""
        parts: list[Mapping[str, object]] = [
            {name: wanted[name] for name in shape} for shape in shapes if wanted.keys() >= set(shape)
        ]
        if self._skills() is not None:
            parts.append({})
        for turn in dict.fromkeys((None, entry.written.turn)):
            for scope in (_ALL, entry.written.scope or _ALL):  # One of them may be a mapping.
                yield from (canonical_json([turn, scope, part]) for part in parts)

    def _skills(self) -> tuple[str, str] | None:
        return self.entries.provider("reject_skills")

    def _report(
        self, what: str, stimulus: Stimulus, first: Entry, second: Entry, place: Place, reports: Reports
    ) -> Iterator[Finding]:
        line = _line(reports.loaded, first)
        message = f"{quoted(what)} is both required and disallowed{f' (see line {line})' if line else ''}"
        yield from reports.at_entry("required-and-disallowed", message, stimulus, second, *place)


def _name(item: Mapping[str, object]) -> str:
    return str(item.get("name"))


def _items(entry: Entry, key: str) -> Iterator[tuple[Place, Mapping[str, object]]]:
    """Items of a list as mappings; a text is a name."""
    value = entry.config.get(key)
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    for index, item in enumerate(items):
        place: Place = (key,) if isinstance(value, str) else (key, index)
        mapping = {"name": item} if isinstance(item, str) else item
        if isinstance(mapping, Mapping) and mapping and all(map(is_filled, mapping.values())):
            yield place, mapping


def _line(loaded: LoadedSpec, entry: Entry) -> int | None:
    at = loaded.position(entry.written.pointer) if entry.written.pointer else entry.written.position
    return None if at is None else at.line
