"""The same thing required by one grader of a stimulus and disallowed by another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vally import LoadedSpec, Stimulus, canonical_json
from vally_command_lint.findings import Finding
from vally_command_lint.stimulus_entries import Entries, Entry, Reports, is_filled, quoted

_ANY = "*"
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
            key = canonical_json([asked, entry.written.turn, entry.written.scope or "all"])
            negated = entry.config.get("negate") is True or "-not-" in entry.written.type
            other = seen.setdefault(key, (negated, entry))
            if other[0] != negated:
                what = next((value for value in reversed(asked.values()) if isinstance(value, str)), entry.written.type)
                yield from self._report(str(what), stimulus, other[1], entry, (), reports)

    def _listed(self, stimulus: Stimulus, group: list[Entry], reports: Reports) -> Iterator[Finding]:
        for index, first in enumerate(group):
            for second in group[index + 1 :]:
                for asks, forbids in ((first, second), (second, first)):
                    found = self._clash(asks, forbids)
                    if found is not None:
                        label, wanted, unwanted = found
                        place = wanted if second is asks else unwanted
                        yield from self._report(label, stimulus, first, second, place, reports)

    def _clash(self, asks: Entry, forbids: Entry) -> tuple[str, Place, Place] | None:
        if not {"required", "disallowed"} <= asks.fields.keys() or not _covers(forbids, asks):
            return None
        skills = self.entries.provider("reject_skills")
        for wanted_place, wanted in _items(asks, "required"):
            for place, unwanted in _items(forbids, "disallowed"):
                any_skill = unwanted == {"name": _ANY} and skills == (forbids.written.type, "disallowed")
                if any_skill or all(key in wanted and wanted[key] == value for key, value in unwanted.items()):
                    return str(wanted.get("name")), wanted_place, place
        return None

    def _report(
        self, what: str, stimulus: Stimulus, first: Entry, second: Entry, place: Place, reports: Reports
    ) -> Iterator[Finding]:
        line = _line(reports.loaded, first)
        message = f"{quoted(what)} is both required and disallowed{f' (see line {line})' if line else ''}"
        yield from reports.at_entry("required-and-disallowed", message, stimulus, second, *place)


def _covers(outer: Entry, inner: Entry) -> bool:
    """Whether one entry looks at least at everything that the other looks at."""
    same_turn = outer.written.turn is None or outer.written.turn == inner.written.turn
    return same_turn and outer.written.scope in (None, "all", inner.written.scope)


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
