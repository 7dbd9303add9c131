"""`vally experiment merge`: the records of all shards as one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally import (
    NO_MODEL,
    PlannedEval,
    PlannedStimulus,
    RunSummary,
    RunTally,
    TrialFacts,
    VallyError,
    atomic_write,
    index_results,
    load_trial_result,
    parse_json,
    parse_timestamp,
    print_error,
    print_object,
    print_warning,
    record_line,
    timestamp,
)
from vally_command_experiment.contamination import contamination_error
from vally_command_experiment.documents import MANIFEST_NAME, PLAN_NAME, PROVENANCE_NAME, SUMMARY_NAME, summary_document
from vally_command_experiment.figures import Figures
from vally_command_experiment.merge_report import tell_merge
from vally_command_experiment.planning import variant_parts
from vally_command_experiment.report_data import Report
from vally_command_experiment.reports import write_reports
from vally_command_experiment.shard_checks import ShardDirectory, check_shards, read_shard
from vally_command_experiment.writing import write_document

if TYPE_CHECKING:
    from vally import CliContext, IndexEntry


def merge_shards(context: CliContext, options: Mapping[str, Any]) -> int:
    """Check, then write the whole run; returns the exit code. Raises `VallyError` before anything is written."""
    shards = [read_shard(context.cwd / word, word) for word in options["directories"]]
    target = context.cwd / options["output_dir"]
    check_shards(shards, target, options["output_dir"])
    merge = Merge(shards, target)
    summary, document = merge.write(html=options["html"])
    failed = document["hadExecutionErrors"] or document["partial"] or document["contaminated"]
    failing = any(not variant["passed"] for variant in document["variants"])
    code = 1 if failed or (options["require_pass"] and failing) else 0
    if options["output"] == "json":
        print_object({**document, "runDir": options["output_dir"], "exitCode": code})
    else:
        tell_merge(context, summary, document["contaminated"], len(shards), options["output_dir"])
    for item in document["contaminated"]:
        print_error(contamination_error(item))
    if merge.unknown:
        missing = f"without {SUMMARY_NAME} it is not known whether arms were contaminated"
        print_warning(f"{', '.join(merge.unknown)}: {missing}")
    return code


Place = tuple[Path, "IndexEntry"]
"""Where a trial record lies: its file and its line there."""


class Merge:
    """The shards of one run, already checked against each other."""

    def __init__(self, shards: Sequence[ShardDirectory], target: Path) -> None:
        self._shards = shards
        self._target = target
        self._plan = shards[0].plan
        self._head: Mapping[str, Any] = shards[0].manifest["experiment"]
        self._parts = variant_parts(self._head["variantNames"])
        self._planned = list(_planned_evals(self._plan))
        self._figures = Figures()
        self._facts: list[TrialFacts] = []
        self._grades = 0
        self._tally = RunTally(self._planned)

    def write(self, *, html: bool) -> tuple[RunSummary, dict[str, Any]]:
        """Write everything; returns what the run came to, and the document of it."""
        found = self._find_records()
        # Runs with --skip-grade left no grade anywhere, and none is missed.
        self._tally = RunTally(self._planned, graded=bool(self._grades) or not self._misses_grades())
        for facts in self._facts:
            self._tally.add(facts)
        try:
            self._target.mkdir(parents=True, exist_ok=True)
            self._write_records(found)
        except OSError as error:
            raise VallyError(f"cannot write: {error.strerror or error}", where=str(self._target)) from error
        summary = self._summary()
        document = summary_document(self._head, summary, [], self._contaminated())
        write_document(self._target / PLAN_NAME, self._plan)
        experiment = {"type": "experiment-manifest", "version": 1, "experiment": dict(self._head)}
        write_document(self._target / MANIFEST_NAME, experiment)
        write_document(self._target / SUMMARY_NAME, document)
        write_reports(self._target, Report(document, self._figures, [], self._plan_rows()), html=html)
        return summary, document

    def _find_records(self) -> dict[str, list[Place]]:
        """Where the records of each variant lie, in plan order; each is counted. Raises `VallyError`."""
        found: dict[str, list[Place]] = {}
        for variant, part in self._parts.items():
            places = self._places(part)
            planned = [item for item in self._planned if item.variant == variant]
            keys = [(item, key) for item in planned for key in _keys(item)]
            found[variant] = [self._counted(places[key], item) for item, key in keys]
        return found

    def _places(self, part: str) -> dict[str, Place]:
        paths = [path for shard in self._shards if (path := shard.path / part / "results.jsonl").is_file()]
        return {entry.item_id: (path, entry) for path in paths for entry in index_results(path).entries}

    def _counted(self, place: Place, planned: PlannedEval) -> Place:
        path, entry = place
        try:
            result = load_trial_result(parse_json(entry.read(path)))
        except VallyError as error:
            raise VallyError(error.message, where=f"{path}:{entry.line}", code=error.code) from error
        facts = TrialFacts.from_result(result, planned.threshold, eval_index=planned.index)
        self._facts.append(facts)
        self._grades += result.grade_result is not None
        self._figures.add(result, facts.passed)
        return place

    def _misses_grades(self) -> bool:
        """Whether a trial that succeeded has no grade although its stimulus has graders."""
        graded = {
            (item.index, stimulus.name) for item in self._planned for stimulus in item.stimuli if stimulus.grader_count
        }
        return any(facts.status == "success" and (facts.eval_index, facts.stimulus) in graded for facts in self._facts)

    def _write_records(self, found: Mapping[str, Sequence[Place]]) -> None:
        for variant, part in self._parts.items():
            directory = self._target / part
            directory.mkdir()
            planned = {item.index for item in self._planned if item.variant == variant}
            with (directory / "results.jsonl").open("wb") as file:
                for path, entry in found[variant]:
                    file.write(entry.read(path) + b"\n")
                if planned:
                    file.write(record_line(self._summary(planned)))
            lines = [line for shard in self._shards for line in shard.lines(part, PROVENANCE_NAME)]
            atomic_write(directory / PROVENANCE_NAME, b"".join(dict.fromkeys(_provenance(lines))))

    def _summary(self, indexes: set[int] | None = None) -> RunSummary:
        started, completed = self._span()
        return self._tally.run_summary(
            run_id=self._head["runId"],
            started_at=timestamp(started),
            completed_at=timestamp(completed),
            duration_ms=round((completed - started).total_seconds() * 1000),
            indexes=indexes,
        )

    def _span(self) -> tuple[datetime, datetime]:
        """From the first start of a shard to the last end."""
        summaries = [summary for shard in self._shards for summary in shard.summaries(self._parts.values())]
        starts = [time for item in summaries if (time := parse_timestamp(item.get("startedAt"))) is not None]
        ends = [time for item in summaries if (time := parse_timestamp(item.get("completedAt"))) is not None]
        now = parse_timestamp(timestamp())
        assert now is not None
        return min(starts, default=now), max(ends, default=now)

    def _contaminated(self) -> list[dict[str, Any]]:
        return [dict(item) for shard in self._shards for item in shard.contaminated or ()]

    @property
    def unknown(self) -> list[str]:
        """The shards with trials that do not say what their agents loaded."""
        return [shard.name for shard in self._shards if shard.contaminated is None and shard.selected]

    def _plan_rows(self) -> list[dict[str, Any]]:
        hashes = {
            (record.get("variant"), record.get("evalFile")): record
            for shard in self._shards
            for part in self._parts.values()
            for record in map(parse_json, shard.lines(part, PROVENANCE_NAME))
        }
        return [
            {
                "variant": item["variant"],
                "evalFile": item["evalFile"],
                "model": item["model"],
                "runs": item["runs"],
                "stimuli": item["plannedStimulusNames"],
                "judgeModel": item.get("judgeModel", ""),
                "evalHash": hashes.get((item["variant"], item["evalFile"]), {}).get("evalHash", ""),
                "configHash": hashes.get((item["variant"], item["evalFile"]), {}).get("configHash", ""),
            }
            for item in self._plan["evals"]
        ]


def _provenance(lines: Sequence[bytes]) -> Iterator[bytes]:
    """One line for each eval; those of several shards differ by their time only."""
    seen = set()
    for line in lines:
        record = parse_json(line)
        key = (record.get("evalFile"), record.get("evalHash"), record.get("configHash"))
        if key not in seen:
            seen.add(key)
            yield line


def _keys(planned: PlannedEval) -> Iterator[str]:
    """The shard keys of a planned eval in their order."""
    for stimulus in planned.stimuli:
        for trial in range(stimulus.trials):
            yield planned.item_id(stimulus.name, trial)


def _planned_evals(plan: Mapping[str, Any]) -> Iterator[PlannedEval]:
    for index, item in enumerate(plan["evals"]):
        yield PlannedEval(
            index=index,
            name=item["evalName"],
            eval_file_path=item["evalFile"],
            variant=item["variant"],
            model=item["model"] or NO_MODEL,
            executor=item.get("executor", ""),
            judge_model=item.get("judgeModel", ""),
            threshold=item.get("threshold"),
            pass_rate=item.get("passRate"),
            stimuli=tuple(
                PlannedStimulus(
                    name=stimulus["name"], line=None, grader_count=len(stimulus["graders"]), trials=item["runs"]
                )
                for stimulus in item["stimuli"]
            ),
        )
