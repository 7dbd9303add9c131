"""The checks of `tool-calls`, each with its verdict and evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vally import ToolCall
from vally_grader_tool_calls.tool_calls_config import ToolCallsConfig
from vally_grader_tool_calls.tool_match import Matcher


@dataclass(frozen=True, slots=True)
class Check:
    """One check: `required[i]`, `disallowed[i]`, `sequence` or `parallel`."""

    name: str
    passed: bool
    evidence: str


def make_checks(config: ToolCallsConfig, calls: Sequence[ToolCall]) -> list[Check]:
    """Every check over the calls of a view. Raises `InvalidRegex` before any pattern is tried."""
    required, disallowed, sequence, parallel = (
        [Matcher(entry) for entry in entries]
        for entries in (config.required, config.disallowed, config.sequence, config.parallel)
    )
    checks = [Check(f"required[{index}]", *_required(entry, calls)) for index, entry in enumerate(required)]
    checks += [Check(f"disallowed[{index}]", *_disallowed(entry, calls)) for index, entry in enumerate(disallowed)]
    if sequence:
        checks.append(Check("sequence", *_sequence(sequence, calls)))
    if parallel:
        checks.append(Check("parallel", *_parallel(parallel, calls)))
    return checks


def _required(wanted: Matcher, calls: Sequence[ToolCall]) -> tuple[bool, str]:
    entry, shown = wanted.entry, f"Required tool '{wanted.label}'"
    found = [call for call in calls if wanted.counts(call)]
    if not found:
        return False, f"{shown} NOT called{_limit(wanted)}"
    if len(found) < entry.min_count:
        return False, f"{shown} called {len(found)} time(s), expected at least {entry.min_count}"
    if entry.final and found[-1] is not calls[-1]:
        return False, f"{shown} is not the final tool call (final call: '{calls[-1].name}')"
    return True, f"{shown} called {len(found)} time(s)"


def _limit(wanted: Matcher) -> str:
    entry = wanted.entry
    if entry.at_step is not None:
        return f" at step {entry.at_step}"
    return "" if entry.before_step is None else f" before step {entry.before_step}"


def _disallowed(unwanted: Matcher, calls: Sequence[ToolCall]) -> tuple[bool, str]:
    shown = f"Disallowed tool '{unwanted.label}'"
    found = [call for call in calls if unwanted.matches(call)]
    if found:
        return False, f"{shown} called {len(found)} time(s) (first: '{found[0].name}')"
    return True, f"{shown} not called"


def _sequence(wanted: Sequence[Matcher], calls: Sequence[ToolCall]) -> tuple[bool, str]:
    rest = iter(calls)
    previous: ToolCall | None = None
    for position, entry in enumerate(wanted, 1):
        found = next((call for call in rest if entry.matches(call)), None)
        if found is None:
            after = f" after '{previous.name}'" if previous else ""
            return False, f"Sequence broken at entry {position} of {len(wanted)}: no '{entry.label}'{after}"
        previous = found
    return True, f"Sequence found: {' → '.join(entry.label for entry in wanted)}"


def _parallel(wanted: Sequence[Matcher], calls: Sequence[ToolCall]) -> tuple[bool, str]:
    labels = ", ".join(entry.label for entry in wanted)
    if any(len(batch) >= len(wanted) and _assignable(wanted, batch) for batch in _batches(calls)):
        return True, f"Parallel calls found in one batch: {labels}"
    return False, f"No batch contains all of: {labels}"


def _batches(calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    batches: dict[int, list[ToolCall]] = {}
    for call in calls:
        batches.setdefault(call.batch, []).append(call)
    yield from batches.values()


def _assignable(wanted: Sequence[Matcher], batch: Sequence[ToolCall]) -> bool:
    """Whether every entry can have a call of its own; entries that found one may move to another."""
    fitting = [[index for index, call in enumerate(batch) if entry.matches(call)] for entry in wanted]
    taken: dict[int, int] = {}

    def place(entry: int, tried: set[int]) -> bool:
        for call in fitting[entry]:
            if call not in tried:
                tried.add(call)
                if call not in taken or place(taken[call], tried):
                    taken[call] = entry
                    return True
        return False

    return all(place(entry, set()) for entry in range(len(wanted)))
