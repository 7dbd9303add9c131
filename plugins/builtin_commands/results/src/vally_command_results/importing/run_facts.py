"""What a results file says about its run, read in one pass without keeping records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vally import canonical_json, parse_json, parse_timestamp, timestamp
from vally_command_results.importing.finding import FoundRun
from vally_command_results.importing.outcomes import is_outcome
from vally_command_results.importing.values import text, time
from vally_command_results.recorded import items, mapping

LINE_BYTES = 256 * 1024 * 1024
FILE_BYTES = 8 * 1024 * 1024 * 1024


class BadRun(Exception):
    """A run that cannot be imported; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its number (from 1); `record` is None for a last line that is none, and `problem` says why."""

    number: int
    raw: bytes
    record: Mapping[str, Any] | None
    problem: str = ""


@dataclass(slots=True)
class RunFacts:
    """The identity and the summary of a run; `torn` is a warning about a last line that was dropped."""

    found: FoundRun
    sha256: str = ""
    size: int = 0
    summary: Mapping[str, Any] | None = None
    first: Mapping[str, Any] | None = None
    earliest: str | None = None
    has_regraded: bool = False
    repeated: frozenset[str] = field(default_factory=frozenset)
    recorded: frozenset[str] = field(default_factory=frozenset)
    torn: str | None = None

    @property
    def experiment(self) -> Mapping[str, Any]:
        """The experiment block of the records, or what the manifest says for a variant without records."""
        block = mapping((self.first or {}).get("experiment"))
        return block or ({**self.found.experiment.head} if self.first is None else {})

    @property
    def kind(self) -> str:
        """`experiment`, `grade` or `eval`."""
        if self.experiment:
            return "experiment"
        return "grade" if self.has_regraded else "eval"

    @property
    def variant(self) -> str | None:
        """The variant of an experiment's run."""
        if self.kind != "experiment":
            return text((self.first or {}).get("variant"))
        return text(self.experiment.get("variant")) or self.found.path.parent.name

    @property
    def recorded_run_id(self) -> str | None:
        """The id that the records carry."""
        candidates = ((self.first or {}).get("runId"), (self.summary or {}).get("runId"), self.experiment.get("runId"))
        return next((text(value) for value in candidates if isinstance(value, str) and value), None)

    @property
    def started_at(self) -> str | None:
        """When the run began, as far as anything tells."""
        candidates = (self.found.manifest.get("startedAt"), (self.summary or {}).get("startedAt"), self.earliest)
        return next((found for value in candidates if (found := time(value)) is not None), None)

    @property
    def key(self) -> str:
        """What identifies the run wherever its directory lies."""
        run_id = self.recorded_run_id
        if run_id is None:
            first = {name: value for name, value in (self.first or {}).items() if name != "workspacePath"}
            return _digest([self.kind, canonical_json(first)])
        parts = [self.kind, run_id, self.variant or "", self.found.experiment.shard, self.started_at or ""]
        return _digest(parts)

    @property
    def complete(self) -> bool:
        """Whether the run has its summary, or all of its selected keys.

        A variant that was not selected has neither; it is complete once the variants that were selected are.
        """
        if self.summary is not None:
            return True
        manifest = self.found.experiment.manifest
        every = [str(key) for key in items(manifest.get("selectedShardKeys"))]
        done = set(map(str, items(manifest.get("completedShardKeys"))))
        selected = [key for key in every if self._is_own(key)]
        if not selected:
            return bool(every) and done.issuperset(every)
        # A file that was cut holds less than its manifest says.
        return self.recorded.intersection(done).issuperset(selected)

    def _is_own(self, key: str) -> bool:
        """Whether a shard key is one of the variant; names may hold the sign between parts, so the plan tells."""
        planned = (mapping(item) for item in items(self.found.experiment.plan.get("evals")))
        own = [f"{item.get('evalFile')}::{self.variant}::" for item in planned if item.get("variant") == self.variant]
        return key.startswith(tuple(own)) if own else _variant_of(key) == self.variant

    @property
    def completed_at(self) -> str | None:
        """When it ended."""
        return time((self.summary or {}).get("completedAt"))


def _variant_of(key: str) -> str | None:
    parts = key.split("::")
    return parts[1] if len(parts) > 2 else None


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()


def read_facts(found: FoundRun) -> RunFacts:
    """Read a file once; raises `BadRun` and `OSError`."""
    facts = RunFacts(found)
    digest = hashlib.sha256()
    seen: dict[str, int] = {}
    problem = ""
    for line in lines(found, digest):
        facts.size += len(line.raw)
        record = line.record
        if record is None:
            facts.torn = f"{found.source}/results.jsonl: line {line.number} is torn and was left out"
            problem = line.problem
        elif record.get("type") == "run-summary":
            facts.summary = record
        elif is_outcome(record):
            facts.first = facts.first or _head(record)
            facts.has_regraded = facts.has_regraded or record.get("regraded") is True
            item_id = record.get("itemId")
            if isinstance(item_id, str):
                seen[item_id] = seen.get(item_id, 0) + 1
            started = record.get("startedAt") or mapping(mapping(record.get("trajectory")).get("metadata")).get(
                "startedAt"
            )
            if isinstance(started, str):
                moment = _normal(started)
                facts.earliest = moment if facts.earliest is None else min(facts.earliest, moment)
    if facts.torn is not None and facts.summary is not None:
        raise BadRun(problem)
    facts.sha256 = digest.hexdigest()
    facts.recorded = frozenset(seen)
    facts.repeated = frozenset(name for name, count in seen.items() if count > 1)
    return facts


def _head(record: Mapping[str, Any]) -> Mapping[str, Any]:
    # Without a run id the whole record is the identity; with one its large parts are of no use.
    if isinstance(record.get("runId"), str) and record["runId"]:
        return {key: value for key, value in record.items() if key not in ("trajectory", "gradeResult")}
    return record


def _normal(value: str) -> str:
    moment = parse_timestamp(value)
    return value if moment is None else timestamp(moment)


def lines(found: FoundRun, digest: Any = None) -> Iterator[Line]:
    """The lines of a results file; raises `BadRun` for one that is no record.

    A last line that is no JSON is torn: it is given without a record.
    """
    path = found.path
    if path.stat().st_size > FILE_BYTES:
        raise BadRun(f"{found.source}/results.jsonl is larger than {FILE_BYTES // 1024**3} GiB")
    torn: Line | None = None
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(LINE_BYTES + 1):
            number += 1
            if len(raw) > LINE_BYTES:
                raise BadRun(f"{found.source}/results.jsonl: line {number} is larger than {LINE_BYTES // 1024**2} MiB")
            if digest is not None:
                digest.update(raw)
            stripped = raw.strip(b" \t\r\n\xef\xbb\xbf")
            if not stripped:
                continue
            if torn is not None:
                raise BadRun(torn.problem)
            line = _line(found, number, raw, stripped)
            if line.record is None:
                torn = line
            else:
                yield line
    if torn is not None:
        yield torn


def _line(found: FoundRun, number: int, raw: bytes, stripped: bytes) -> Line:
    at = f"{found.source}/results.jsonl"
    try:
        record = parse_json(stripped)
    except ValueError as error:
        is_ended = raw.endswith(b"\n")
        problem = f"{at}: line {number}: not valid JSON: {error}" if is_ended else f"{at}: the last line is torn"
        return Line(number, raw, None, problem)
    if not isinstance(record, dict):
        raise BadRun(f"{at}: line {number}: not a JSON object")
    return Line(number, stripped, record)
