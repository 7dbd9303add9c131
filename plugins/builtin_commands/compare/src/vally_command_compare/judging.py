"""Every pair before a judge, several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from vally import CompareInput, CompareResult, described, invoke, name_key, stimulus_of

if TYPE_CHECKING:
    from vally import GraderSpec, JudgeClient, PluginHost, Stimulus
    from vally_command_compare.pairing import Pair
    from vally_command_compare.sides import Side

TIME_LIMIT_S = 600.0
"""For one pair, both orders and all reminders together."""


_WINNERS = {"treatment": 1, "tie": 0, "baseline": -1}
_DIRECTIONS = {"much-better": 1, "slightly-better": 1, "equal": 0, "slightly-worse": -1, "much-worse": -1}


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria that stand in for the default ones: list items, then instructions as the last criterion."""

    items: tuple[str, ...] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair and what the judge made of it."""

    pair: Pair
    result: CompareResult


class Comparer:
    """Compares pairs by the `compare` of one grader. `rubrics` are by `name_key`."""

    def __init__(
        self,
        host: PluginHost,
        record: GraderSpec,
        *,
        rubrics: Mapping[str, Rubric],
        make_judge: Callable[[], JudgeClient],
    ) -> None:
        self._host = host
        self._record = record
        self._grader = host.create(record)
        self._rubrics = rubrics
        self._make_judge = make_judge

    async def compare_all(
        self,
        baseline: Side,
        treatment: Side,
        pairs: Sequence[Pair],
        *,
        workers: int,
        on_done: Callable[[JudgedPair], None],
    ) -> list[JudgedPair]:
        """Compare all pairs, `workers` at once; the order is that of `pairs`. No failure of a judge raises."""
        done: dict[int, JudgedPair] = {}
        waiting = iter(enumerate(pairs))

        async def work() -> None:
            for number, pair in waiting:
                done[number] = JudgedPair(pair, await self._compare(baseline, treatment, pair))
                on_done(done[number])

        async with anyio.create_task_group() as group:
            for _ in range(min(workers, len(pairs))):
                group.start_soon(work)
        return [done[number] for number in range(len(pairs))]

    async def _compare(self, baseline: Side, treatment: Side, pair: Pair) -> CompareResult:
        try:
            with anyio.fail_after(TIME_LIMIT_S):
                question = await anyio.to_thread.run_sync(self._question, baseline, treatment, pair)
                result = await invoke(self._grader.compare, question, blocking=self._record.blocking)
        except TimeoutError:
            return _errored(f"no answer within {TIME_LIMIT_S:g} s")
        except Exception as error:
            return _errored(described(error))
        if not isinstance(result, CompareResult):
            return _errored(f"grader '{self._record.name}' returned {type(result).__name__}, not a CompareResult")
        if (problem := _contradiction(result)) is not None:
            return _errored(f"grader '{self._record.name}' returned an invalid result: {problem}")
        return result

    def _question(self, baseline: Side, treatment: Side, pair: Pair) -> CompareInput[Any]:
        first, second = baseline.trajectory(pair.baseline), treatment.trajectory(pair.treatment)
        name = first.stimulus.get("name") or pair.baseline.stimulus
        rubric = self._rubrics.get(name_key(name), Rubric())
        stimulus: Stimulus = replace(stimulus_of(first), rubric=rubric.items)
        config = {"prompt": rubric.instructions} if rubric.instructions else {}
        return CompareInput(
            stimulus=stimulus,
            baseline=first,
            treatment=second,
            config=self._host.parse_config(self._record, config),
            judge=self._make_judge(),
        )


def _contradiction(result: CompareResult) -> str | None:
    """Why a result cannot be counted: its parts must tell of one winner."""
    if result.errored:
        return None
    score: object = result.score  # of a plugin, whatever the annotation says
    if not isinstance(score, int | float) or not -1 <= score <= 1:
        return f"score {score!r} is not a number from -1 to 1"
    direction = (score > 0) - (score < 0)
    if _WINNERS.get(result.winner) != direction or _DIRECTIONS.get(result.magnitude) != direction:
        return f"winner '{result.winner}', magnitude '{result.magnitude}' and score {score:g} contradict each other"
    return None


def _errored(evidence: str) -> CompareResult:
    return CompareResult(winner="tie", magnitude="equal", score=0.0, evidence=evidence, errored=True)
