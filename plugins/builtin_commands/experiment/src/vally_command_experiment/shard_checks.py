"""Whether directories are the shards of one run, all of them, each complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import ReadProblem, VallyError, canonical_json, index_results, parse_json, read_lines
from vally_command_experiment.documents import PLAN_NAME, PROVENANCE_NAME, SHARD_MANIFEST_NAME, SUMMARY_NAME
from vally_command_experiment.planning import variant_parts
from vally_command_experiment.shard_shapes import check_contaminated, check_manifest, check_plan, read_document

_FIELDS = (("run id", "runId"), ("experiment hash", "experimentHash"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardDirectory:
    """One directory with its manifest and plan.

    `name` is how messages call it, `contaminated` are the arms whose agents had something else than they should; None
    when nothing says so, because its process was killed before it could.
    """

    name: str
    path: Path
    manifest: Mapping[str, Any]
    plan: Mapping[str, Any]
    contaminated: Sequence[Mapping[str, Any]] | None

    @property
    def index(self) -> int:
        """Which shard it is, from 1."""
        return int(self.manifest["shard"]["index"])

    @property
    def count(self) -> int:
        """How many shards there are."""
        return int(self.manifest["shard"]["count"])

    @property
    def selected(self) -> list[str]:
        """The keys it had to run."""
        return list(self.manifest["selectedShardKeys"])

    @property
    def completed(self) -> set[str]:
        """The keys it has run."""
        return set(self.manifest["completedShardKeys"])

    def lines(self, part: str, name: str) -> list[bytes]:
        """The lines of a file of a variant, with their line ends; none when it is missing."""
        problems: list[ReadProblem] = []
        try:
            with (self.path / part / name).open("rb") as file:
                return [line.raw + b"\n" for line in read_lines(file, problems)]
        except FileNotFoundError:
            return []

    def summaries(self, parts: Iterable[str]) -> Iterator[Mapping[str, Any]]:
        """The run summaries of its variants."""
        for part in parts:
            path = self.path / part / "results.jsonl"
            if path.is_file() and (summary := index_results(path).summary) is not None:
                yield summary


def read_shard(path: Path, name: str) -> ShardDirectory:
    """Read what a directory says about itself; raises `VallyError` when it is no shard directory."""
    try:
        manifest, plan, summary = [
            read_document(path / file) for file in (SHARD_MANIFEST_NAME, PLAN_NAME, SUMMARY_NAME)
        ]
    except ValueError as error:
        raise _no_shard(name, str(error)) from error
    if manifest is None or plan is None:
        needed = f"it needs a {SHARD_MANIFEST_NAME} and a {PLAN_NAME} of `vally experiment run --shard`"
        raise _no_shard(name, needed)
    _check_shape(manifest, check_manifest, name, SHARD_MANIFEST_NAME)
    _check_shape(plan, check_plan, name, PLAN_NAME)
    _check_shape(summary or {}, check_contaminated, name, SUMMARY_NAME)
    contaminated = None if summary is None else summary.get("contaminated", [])
    return ShardDirectory(name=name, path=path, manifest=manifest, plan=plan, contaminated=contaminated)


def _check_shape(document: Mapping[str, Any], check: Callable[[Mapping[str, Any]], None], name: str, file: str) -> None:
    try:
        check(document)
    except ValueError as error:
        raise _no_shard(name, f"{file}: {error}") from error


def _no_shard(name: str, reason: str) -> VallyError:
    return VallyError(f"{name} is not a shard directory", hints=[reason])


def check_shards(shards: Sequence[ShardDirectory], target: Path, target_name: str) -> None:
    """Raise `VallyError` unless the shards make a whole run and the target can take it."""
    _check_target(shards, target, target_name)
    first = shards[0]
    for other in shards[1:]:
        _check_equal(first, other)
    _check_keys(shards)


def _check_target(shards: Sequence[ShardDirectory], target: Path, name: str) -> None:
    resolved = target.resolve()
    for shard in shards:
        if resolved.is_relative_to(shard.path.resolve()):
            raise VallyError(
                f"output directory {name} lies inside the shard directory {shard.name}", where="--output-dir"
            )
    if target.exists() and not target.is_dir():
        raise VallyError(f"output directory {name} is a file", where="--output-dir")
    if target.is_dir() and any(target.iterdir()):
        raise VallyError(f"output directory {name} is not empty", where="--output-dir")


def _check_equal(first: ShardDirectory, other: ShardDirectory) -> None:
    for name, key in _FIELDS:
        _same(first, other, name, first.manifest["experiment"].get(key), other.manifest["experiment"].get(key))
    _same(first, other, "number of shards", first.count, other.count)
    ours, theirs = _hashes(first), _hashes(other)
    for arm in sorted(ours.keys() & theirs.keys()):
        for label, key in (("eval hash", "evalHash"), ("config hash", "configHash")):
            _same(first, other, f"{label} of {arm[1]}, {arm[0]}", ours[arm].get(key), theirs[arm].get(key))
    # Says least of all what is different, but also about evals of which two shards have nothing in common.
    ours_digest, theirs_digest = (shard.manifest["experiment"].get("planDigest") for shard in (first, other))
    _same(
        first,
        other,
        "plan digest",
        ours_digest,
        theirs_digest,
        hint="an eval, or a file of its plan, was changed between the shards",
    )
    if canonical_json(dict(first.plan)) != canonical_json(dict(other.plan)):
        raise VallyError(f"plan snapshots differ: {first.name}, {other.name}")


def _same(
    first: ShardDirectory, other: ShardDirectory, field: str, ours: object, theirs: object, hint: str | None = None
) -> None:
    if ours != theirs:
        text = f"shards differ in {field}: {ours} ({first.name}) and {theirs} ({other.name})"
        raise VallyError(text, hints=[hint] if hint else [])


def _hashes(shard: ShardDirectory) -> dict[tuple[str, str], Mapping[str, Any]]:
    parts = variant_parts(shard.manifest["experiment"]["variantNames"])
    records = (parse_json(line) for part in parts.values() for line in shard.lines(part, PROVENANCE_NAME))
    return {(str(record.get("variant")), str(record.get("evalFile"))): record for record in records}


def _check_keys(shards: Sequence[ShardDirectory]) -> None:
    owner: dict[str, ShardDirectory] = {}
    for shard in shards:
        for key in shard.selected:
            if key in owner:
                raise VallyError(
                    f"shard key run twice: {key}", hints=[f"it is in {owner[key].name} and in {shard.name}"]
                )
            owner[key] = shard
    missing = [key for key in _planned_keys(shards[0].plan) if key not in owner]
    if missing:
        absent = sorted(set(range(1, shards[0].count + 1)) - {shard.index for shard in shards})
        every = "every shard is there, but ran only a part: leave out --variant, --eval-filter, --stimulus and --tag"
        hints = [f"absent shards: {', '.join(map(str, absent))}" if absent else every]
        raise VallyError(f"missing shard keys: {len(missing)}, first {missing[0]}", hints=hints)
    for shard in shards:
        recorded = _recorded(shard)
        # One of another shard would take the place of the record there, and one of no shard would get lost.
        foreign = sorted(recorded - set(shard.selected))
        if foreign:
            raise VallyError(
                f"shard {shard.index} of {shard.count} has records that are not its own: "
                f"{len(foreign)}, first {foreign[0]}",
                where=shard.name,
                hints=["run the shard again with another --run-id, or take the directory that it wrote"],
            )
        left = [key for key in shard.selected if key not in recorded & shard.completed]
        if left:
            raise VallyError(
                f"shard {shard.index} of {shard.count} is incomplete",
                where=shard.name,
                hints=[f"{len(left)} keys without a result, first {left[0]}"],
            )


def _recorded(shard: ShardDirectory) -> set[str]:
    parts = variant_parts(shard.manifest["experiment"]["variantNames"]).values()
    paths = (shard.path / part / "results.jsonl" for part in parts)
    return {entry.item_id for path in paths if path.is_file() for entry in index_results(path).entries}


def _planned_keys(plan: Mapping[str, Any]) -> Iterator[str]:
    for item in plan["evals"]:
        for name in item["plannedStimulusNames"]:
            for trial in range(item["runs"]):
                yield f"{item['evalFile']}::{item['variant']}::{item['model']}::{name}::trial-{trial}"
