"""The judges of a stored run asked again, several trials at a time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vally import (
    DEFAULT_JUDGE_MODEL,
    EvalSpec,
    GraderEntry,
    GraderResult,
    GradingRequest,
    JudgePool,
    JudgeSettings,
    LocalProcessRunner,
    Places,
    RecordError,
    Stimulus,
    TrialResult,
    dump_record,
    has_grader_error,
    leave_threads_behind,
    load_trial_result,
    located,
    matching_entry,
    plain_value,
    print_warning,
    recorded_trajectory,
    rejudged,
    unjudged,
    with_results,
)

if TYPE_CHECKING:
    from vally import CliContext, JudgeUsage, PluginHost, Redactor, StoredRun, StoredTrials, TrialEntry
    from vally_command_inspect_runs.rewriting import Rewriting


@dataclass(slots=True, kw_only=True)
class Slot:
    """One result that a judge had left open. `problem` says why it could not be asked again."""

    item_id: str
    eval_name: str
    variant: str
    model: str | None
    stimulus: str
    trial_index: int
    total: int
    grader: str
    before: GraderResult
    after: GraderResult | None = None
    problem: str | None = None

    @property
    def changed(self) -> bool:
        """Whether the record gets another result."""
        return self.after is not None and self.after is not self.before

    @property
    def is_open(self) -> bool:
        """Whether a judge still owes an answer."""
        return self.after is None or has_grader_error(self.after)

    def record(self) -> dict[str, Any]:
        """For machine output."""
        return {
            "itemId": self.item_id,
            "grader": self.grader,
            "status": "error" if self.is_open else "success",
            "passed": self.after.passed if self.after is not None and not self.is_open else None,
            "score": self.after.score if self.after is not None and not self.is_open else None,
            "evidence": self.problem or (self.after.evidence if self.after else self.before.evidence),
        }


class Asker:
    """Asks again what is open in results files; `slots` collects what became of it."""

    def __init__(
        self,
        context: CliContext,
        options: Mapping[str, Any],
        *,
        host: PluginHost,
        specs: Sequence[EvalSpec],
        redactor: Redactor,
        cache: Any,
        run: StoredRun,
    ) -> None:
        self._context = context
        self._options = options
        self._host = host
        self._specs = specs
        self._redactor = redactor
        self._cache = cache
        recorded = run.manifest().get("options")
        self._recorded: Mapping[str, Any] = recorded if isinstance(recorded, dict) else {}
        self.slots: list[Slot] = []

    def ask(self, trials: StoredTrials, rewriting: Rewriting) -> list[Slot]:
        """Ask everything that is open in one file; records with new results go to `rewriting`."""
        import anyio

        found: list[Slot] = anyio.run(self._ask, trials, rewriting)
        self.slots += found
        return found

    async def _ask(self, trials: StoredTrials, rewriting: Rewriting) -> list[Slot]:
        import anyio

        leave_threads_behind()
        context = self._context.judge_context("rejudge")
        judges = JudgePool(self._host, environ=self._context.environ, cache=self._cache, context=context)
        slots: dict[int, list[Slot]] = {}
        limiter = anyio.CapacityLimiter(self._options["workers"])

        async def work(entry: TrialEntry, record: dict[str, Any]) -> None:
            try:
                slots[entry.offset] = await self._trial(judges, trials, entry, record, rewriting)
            finally:
                limiter.release_on_behalf_of(entry)

        try:
            async with anyio.create_task_group() as group:
                for entry, record in trials.records(trials.entries):
                    if not self._is_open(record):
                        continue
                    # Waiting here keeps few records in memory.
                    await limiter.acquire_on_behalf_of(entry)
                    group.start_soon(work, entry, record)
        finally:
            with anyio.CancelScope(shield=True):
                for warning in await judges.shutdown():
                    print_warning(warning)
        return [slot for offset in sorted(slots) for slot in slots[offset]]

    def _is_open(self, record: Mapping[str, Any]) -> bool:
        grade = record.get("gradeResult")
        return isinstance(grade, dict) and _mentions_error(grade)

    async def _trial(
        self,
        judges: JudgePool,
        trials: StoredTrials,
        entry: TrialEntry,
        record: dict[str, Any],
        rewriting: Rewriting,
    ) -> list[Slot]:
        run_dir = trials.path.parent
        try:
            result = load_trial_result(record, trial_index=entry.trial_index, total_trials=entry.total)
            open_places = [] if result.grade_result is None else unjudged(result.grade_result, self._host)
            if not open_places:
                return []
            trajectory = recorded_trajectory(record, run_dir, lambda text, code: print_warning(f"{text} [{code}]"))
        except RecordError as error:
            print_warning(f"stimulus '{entry.stimulus}': {error.message} [bad-record]")
            return []
        assert result.grade_result is not None
        grade = result.grade_result
        slots = {index: _slot(result, (grade.details or [])[index]) for index in open_places}
        found = self._stimulus(entry)
        if found is None:
            for slot in slots.values():
                slot.problem = "the stimulus is not in the given specs"
            return list(slots.values())
        spec, stimulus = found
        client = judges.client(self._settings(spec, list(slots.values())))
        runner = LocalProcessRunner(f"rejudge-{uuid.uuid4()}", dict(self._context.environ))
        request = GradingRequest(
            trajectory=located(trajectory, Places(), run_dir),
            stimulus=stimulus,
            host=self._host,
            runner=runner,
            spec_dir=spec.spec_dir,
            scoring=spec.scoring,
            judge=client,
            run_dir=run_dir,
            seed=result.seed,
            on_warning=print_warning,
        )
        for index, slot in slots.items():
            await self._slot_again(request, stimulus.graders, grade, index, slot)
        changed = {index: slot.after for index, slot in slots.items() if slot.changed and slot.after is not None}
        if changed:
            rewriting.replace(entry, self._updated(record, result, with_results(grade, changed), client.usage()))
        return list(slots.values())

    async def _slot_again(
        self, request: GradingRequest, entries: Sequence[GraderEntry], grade: GraderResult, index: int, slot: Slot
    ) -> None:
        entry = matching_entry(grade.details or [], index, entries)
        if entry is None:
            slot.problem = "the grader is not in the given specs"
            return
        slot.after = await rejudged(request, entry, slot.before)

    def _stimulus(self, entry: TrialEntry) -> tuple[EvalSpec, Stimulus] | None:
        """The stimulus of a record: of the spec of its file, else of its eval, else of any."""
        same = [spec for spec in self._specs if spec.display_path == entry.eval_file]
        same = same or [spec for spec in self._specs if spec.name == entry.eval_name] or list(self._specs)
        matches = [(spec, item) for spec in same for item in spec.stimuli if item.name == entry.stimulus]
        return matches[0] if matches else None

    def _settings(self, spec: EvalSpec, slots: Sequence[Slot]) -> JudgeSettings:
        """Options of this command, then what the failed judges were, then the options of the run and the spec."""
        asked = [slot.before.metadata or {} for slot in slots]
        model = next((item["model"] for item in asked if isinstance(item.get("model"), str)), None)
        effort = next((item["reasoningEffort"] for item in asked if isinstance(item.get("reasoningEffort"), str)), None)
        options, recorded, defaults = self._options, self._recorded, spec.defaults
        return JudgeSettings(
            provider=defaults.judge_provider,
            model=options["judge_model"]
            or model
            or recorded.get("judge_model")
            or defaults.judge_model
            or DEFAULT_JUDGE_MODEL,
            reasoning_effort=options["judge_reasoning_effort"]
            or effort
            or recorded.get("judge_reasoning_effort")
            or defaults.judge_reasoning_effort,
        )

    def _updated(
        self, record: dict[str, Any], result: TrialResult, grade: GraderResult, usage: JudgeUsage | None
    ) -> dict[str, Any]:
        updated = {**record, "gradeResult": self._redactor.value(plain_value(dump_record(grade)).value)}
        if usage is not None:
            updated["judgeUsage"] = dump_record(_sum(result.judge_usage, usage))
        return updated


def _slot(result: TrialResult, before: GraderResult) -> Slot:
    return Slot(
        item_id=result.item_id,
        eval_name=result.eval_name,
        variant=result.variant,
        model=result.model,
        stimulus=result.stimulus,
        trial_index=result.trial_index,
        total=result.total_trials,
        grader=before.name,
        before=before,
    )


def _mentions_error(grade: Mapping[str, Any]) -> bool:
    """Whether a result or one below it has no verdict; a cheap look before anything is validated."""
    if grade.get("status") == "error":
        return True
    details = grade.get("details")
    return isinstance(details, list) and any(isinstance(item, dict) and _mentions_error(item) for item in details)


def _sum(before: JudgeUsage | None, new: JudgeUsage) -> JudgeUsage:
    if before is None:
        return new
    same_unit = before.cost is not None and new.cost is not None and before.cost.unit == new.cost.unit
    cost = before.cost or new.cost
    if same_unit and before.cost is not None and new.cost is not None:
        cost = before.cost.model_copy(update={"amount": before.cost.amount + new.cost.amount})
    return before.model_copy(
        update={
            "input_tokens": before.input_tokens + new.input_tokens,
            "output_tokens": before.output_tokens + new.output_tokens,
            "total_tokens": before.total_tokens + new.total_tokens,
            "call_count": before.call_count + new.call_count,
            "cost": cost,
        }
    )
