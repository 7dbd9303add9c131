"""Filters of runs and outcomes, as parameters give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from vally_command_results.store.schema import evals, grader_results, outcome_tags, outcomes, runs, tool_calls

Strings = tuple[str, ...]


def _like(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Whatever the case of letters; which letters `ILIKE` knows depends on the database and its locale."""
    return column.regexp_match("".join(map(_either_case, text)))


def _either_case(character: str) -> str:
    cases = sorted({case for case in (character, character.lower(), character.upper()) if len(case) == 1})
    if len(cases) > 1:
        return f"[{''.join(cases)}]"
    return character if character.isalnum() else f"\\{character}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; several values of one field are alternatives, fields combine."""

    q: Strings = ()
    eval_name: Strings = ()
    model: Strings = ()
    variant: Strings = ()
    kind: Strings = ()
    group: Strings = ()
    verdict: Strings = ()
    since: str | None = None
    until: str | None = None

    def context(self) -> dict[str, Any]:
        """What a cursor remembers."""
        return asdict(self)

    def conditions(self) -> list[ColumnElement[bool]]:
        """Conditions on `runs`."""
        found: list[ColumnElement[bool]] = []
        if self.q:
            found.append(or_(*(_contains(column, text) for column in (runs.c.name, runs.c.source) for text in self.q)))
        for column, values in ((runs.c.variant, self.variant), (runs.c.kind, self.kind), (runs.c.group_id, self.group)):
            if values:
                found.append(column.in_(values))
        if self.eval_name:
            found.append(exists().where(evals.c.run_id == runs.c.id, evals.c.name.in_(self.eval_name)))
        if self.model:
            found.append(exists().where(evals.c.run_id == runs.c.id, evals.c.model.in_(self.model)))
        if self.verdict:
            found.append(or_(*(_run_verdict(name) for name in self.verdict)))
        if self.since is not None:
            found.append(runs.c.started_at >= self.since)
        if self.until is not None:
            found.append(runs.c.started_at <= self.until)
        return found


def _run_verdict(name: str) -> ColumnElement[bool]:
    nothing = and_(runs.c.kind == "experiment", runs.c.passed.is_(None), runs.c.outcome_count == 0)
    told = and_(runs.c.complete, ~nothing)
    settled = and_(told, ~runs.c.partial)
    unsaid = and_(runs.c.passed.is_(None), runs.c.fail_count == 0, runs.c.error_count == 0)
    passed = or_(runs.c.passed.is_(True), unsaid)
    errors = or_(runs.c.had_execution_errors, runs.c.error_count > 0)
    return {
        "incomplete": ~told,
        "partial": and_(told, runs.c.partial),
        "error": and_(settled, passed, errors),
        "pass": and_(settled, passed, ~errors),
        "fail": and_(settled, ~passed),
    }[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeFilter:
    """Which outcomes; `tag` has `key:value` pairs, `tool` names tools called at least once."""

    run_id: Strings = ()
    eval_name: Strings = ()
    stimulus: Strings = ()
    q: Strings = ()
    model: Strings = ()
    variant: Strings = ()
    status: Strings = ()
    verdict: Strings = ()
    trial_index: tuple[int, ...] = ()
    tag: Strings = ()
    grader: Strings = ()
    grader_passed: bool | None = None
    tool: Strings = ()
    min_score: float | None = None
    max_score: float | None = None

    def context(self) -> dict[str, Any]:
        """What a cursor remembers."""
        return asdict(self)

    def conditions(self) -> list[ColumnElement[bool]]:
        """Conditions on `outcomes`, joined with `evals`."""
        columns: Mapping[ColumnElement[Any], Sequence[Any]] = {
            outcomes.c.run_id: self.run_id,
            evals.c.name: self.eval_name,
            outcomes.c.stimulus: self.stimulus,
            outcomes.c.model: self.model,
            outcomes.c.variant: self.variant,
            outcomes.c.status: self.status,
            outcomes.c.verdict: self.verdict,
            outcomes.c.trial_index: self.trial_index,
        }
        found: list[ColumnElement[bool]] = [column.in_(values) for column, values in columns.items() if values]
        if self.q:
            found.append(or_(*(outcomes.c.search_text.like(_like(text.lower()), escape="\\") for text in self.q)))
        if self.tag:
            found.append(or_(*map(_tag, self.tag)))
        if self.grader:
            found.append(self._grader())
        if self.tool:
            named = _of_outcome(tool_calls.c.tool_name).in_(self.tool)
            found.append(exists().where(tool_calls.c.outcome_id == outcomes.c.id, named))
        if self.min_score is not None:
            found.append(outcomes.c.score >= self.min_score)
        if self.max_score is not None:
            found.append(outcomes.c.score <= self.max_score)
        return found

    def _grader(self) -> ColumnElement[bool]:
        named = _of_outcome(grader_results.c.name).in_(self.grader)
        same = [grader_results.c.outcome_id == outcomes.c.id, named]
        if self.grader_passed is not None:
            same += [grader_results.c.passed.is_(self.grader_passed), grader_results.c.status.is_distinct_from("error")]
        return exists().where(*same)


def _of_outcome(name: ColumnElement[Any]) -> ColumnElement[Any]:
    """A name that is looked at in the few rows of each outcome; its own index would find it in all of the store."""
    return func.coalesce(name, "")


def _tag(text: str) -> ColumnElement[bool]:
    """`key:value`; as both may hold colons, any of them may be the one between."""
    splits = [(text[:place], text[place + 1 :]) for place, character in enumerate(text) if character == ":"]
    named = or_(*(and_(outcome_tags.c.key == key, outcome_tags.c.value == value) for key, value in splits))
    return outcomes.c.id.in_(select(outcome_tags.c.outcome_id).where(named))
