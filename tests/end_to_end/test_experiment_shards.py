"""Shards and their merging."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from experiments import Experiments


@pytest.fixture
def kit(tmp_path: Path) -> Experiments:
    return Experiments(tmp_path)


pytestmark = pytest.mark.heavy
COUNT = 3


def shards(kit: Experiments, count: int = COUNT, run_id: str = "r", words: tuple[str, ...] = ()) -> list[str]:
    for index in range(1, count + 1):
        kit.run("--shard", f"{index}/{count}", "--run-id", run_id, *words)
    return [f"vally-experiment-results/{run_id}/shard-{index}-of-{count}" for index in range(1, count + 1)]


def merge(kit: Experiments, directories: list[str], *words: str) -> Any:
    return kit.vally("experiment", "merge", *directories, "-o", "whole", *words)


def trials(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if json.loads(line)["type"] == "trial-result"]


@pytest.mark.parametrize("strategy", ["by-stimulus", "by-eval"])
def test_shards_hold_whole_units_of_all_variants(kit: Experiments, strategy: str) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kept: list[set[str]] = []
    for index in (1, 2):
        words = (
            "--shard",
            f"{index}/2",
            "--shard-strategy",
            strategy,
            "--run-id",
            "r",
            "--dry-run",
            "--output",
            "json",
        )
        kept.append(set(json.loads(kit.run(*words).stdout)["items"]))
    whole = set(json.loads(kit.run("--dry-run", "--output", "json").stdout)["items"])
    assert kept[0] | kept[1] == whole
    assert not kept[0] & kept[1]
    units = [
        {tuple(key.split("::")[0:4:3]) if strategy == "by-stimulus" else key.split("::")[0] for key in keys}
        for keys in kept
    ]
    assert not units[0] & units[1]


def test_merged_records_are_those_of_the_shards_byte_for_byte(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    directories = shards(kit)
    result = merge(kit, directories)
    assert result.exit_code == 0, result.stderr
    for variant in ("plain", "skilled"):
        merged = trials(kit.root / "whole" / variant / "results.jsonl")
        parts = [line for name in directories for line in trials(kit.root / name / variant / "results.jsonl")]
        assert sorted(merged) == sorted(parts)
        assert len(merged) == 6
        keys = [json.loads(line)["shardKey"] for line in merged]
        assert keys == [key for key in planned(kit) if f"::{variant}::" in key]


def planned(kit: Experiments) -> list[str]:
    return list(json.loads(kit.run("--dry-run", "--output", "json").stdout)["items"])


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what no two runs have in common: times, temporary paths and random ids."""
    kept: Any = record
    for key in (
        "durationMs", "startedAt", "completedAt", "wallTimeMs", "phases", "timestamp", "workspacePath", "workDir", "id",
        "sessionID", "trajectoryId",
    ):  # fmt: skip
        kept = _without(kept, key)
    return dict(kept)


def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(item, key) for name, item in value.items() if name != key}
    return [_without(item, key) for item in value] if isinstance(value, list) else value


def test_a_merged_run_is_the_unsharded_run(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    merge(kit, shards(kit, 5, "same"))
    shutil.move(kit.root / "vally-experiment-results", kit.root / "moved")
    kit.run("--run-id", "same")
    for variant in ("plain", "skilled"):
        whole = kit.records(kit.directory / variant / "results.jsonl")
        merged = kit.records(kit.root / "whole" / variant / "results.jsonl")
        key = lambda item: item.get("shardKey", "")  # noqa: E731  # local and obvious
        assert [timeless(item) for item in sorted(merged[:-1], key=key)] == [
            timeless(item) for item in sorted(whole[:-1], key=key)
        ]
        verdicts = [
            [(item["name"], item["passed"], item["reason"]) for item in run[-1]["evals"]] for run in (whole, merged)
        ]
        assert verdicts[0] == verdicts[1]
        assert whole[-1]["totals"] == merged[-1]["totals"]
    assert json.loads((kit.root / "whole/plan-snapshot.json").read_text()) == kit.document("plan-snapshot.json")
    table = [line for line in (kit.directory / "report.md").read_text().splitlines() if line.startswith("| first /")]
    assert table
    assert all(line in (kit.root / "whole/report.md").read_text() for line in table)


def test_the_merged_directory_has_its_documents(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    directories = shards(kit)
    result = merge(kit, directories, "--require-pass", "--output", "json", "--html")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["exitCode"], document["passed"]) == (1, 1, False)
    names = {path.name for path in (kit.root / "whole").iterdir()}
    assert names == {
        "plain", "skilled", "plan-snapshot.json", "experiment-manifest.json", "experiment-summary.json", "report.md",
        "report.html",
    }  # fmt: skip
    manifest = json.loads((kit.root / "whole/experiment-manifest.json").read_text())
    assert (manifest["type"], "shard" in manifest) == ("experiment-manifest", False)
    assert len(kit.records(kit.root / "whole/plain/run-summary.jsonl")) == 2


@pytest.mark.parametrize(
    ("words", "reasons", "verdict"),
    [
        ((), ["4 of 4 trials failed", "2 of 2 trials failed"], "FAILED  0 of 4 evals passed"),
        (("--threshold", "0"), ["score 0.00 >= 0.00", "score 0.00 >= 0.00"], "PASSED  4 of 4 evals passed"),
        (("--skip-grade",), ["not graded", "not graded"], "SKIPPED  nothing was graded"),
    ],
)
def test_options_of_the_shards_hold_for_the_whole_run(
    kit: Experiments, words: tuple[str, ...], reasons: list[str], verdict: str
) -> None:
    kit.make({"plain": "wrong", "skilled": "wrong"})
    result = merge(kit, shards(kit, 2, words=words), "--require-pass")
    assert (result.exit_code, f"\n{verdict} · " in result.stdout) == (int(not words), True), result.stdout
    summary = kit.records(kit.root / "whole/plain/results.jsonl")[-1]
    assert [item["reason"] for item in summary["evals"]] == reasons
    thresholds = {
        item.get("threshold") for item in json.loads((kit.root / "whole/plan-snapshot.json").read_text())["evals"]
    }
    assert thresholds == ({0} if "--threshold" in words else {None})


@pytest.mark.parametrize("words", [(), ("--quiet",)])
def test_merging_tells_the_verdicts(kit: Experiments, words: tuple[str, ...]) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    result = merge(kit, shards(kit, 2), "--require-pass", *words)
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert "  ✘ first / plain (default-model)     4 of 4 trials failed" in lines
    assert "  ✔ first / skilled (default-model)   all graders passed" in lines
    assert "FAILED  2 of 4 evals passed · 12 trials · 0 errors" in lines
    assert lines[-1] == "Output directory: whole"


def test_a_contaminated_arm_stays_contaminated(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "one", metadata={"skillsLoaded": ["leak"]})
    result = merge(kit, shards(kit, 2))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "  ⚠ first / skilled (default-model)   contaminated" in lines
    spoiled = sum("contaminated" in line for line in lines[:-2])
    assert spoiled
    assert next(line for line in lines if line.startswith("FAILED")).startswith(
        f"FAILED  {4 - spoiled} of 4 evals passed · "
    )
    assert "it should not have [arm-contaminated]" in result.stderr


def test_shards_of_a_part_of_the_plan_are_told_why_they_make_no_run(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = merge(kit, shards(kit, 2, words=("--stimulus", "one")))
    assert result.exit_code == 1
    assert "missing shard keys: 8, first " in result.stderr
    assert "every shard is there, but ran only a part: leave out --variant" in result.stderr


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text())
    for key, value in changes.items():
        holder = document
        *parents, last = key.split("__")
        for parent in parents:
            holder = holder[parent]
        holder[last] = value
    path.write_text(json.dumps(document))


def break_missing(kit: Experiments, directories: list[str]) -> list[str]:
    return directories[:-1]


def break_twice(kit: Experiments, directories: list[str]) -> list[str]:
    shutil.copytree(kit.root / directories[0], kit.root / "copy")
    return [*directories, "copy"]


def break_doubled(kit: Experiments, directories: list[str]) -> list[str]:
    return [directories[0], *directories]


def break_status(kit: Experiments, directories: list[str]) -> list[str]:
    # Of the second variant, whose records come after all those of the first.
    path = kit.root / directories[0] / "skilled/results.jsonl"
    first, *others = kit.records(path)
    path.write_text("".join(json.dumps(item) + "\n" for item in ({**first, "status": "odd"}, *others)))
    return directories


def break_incomplete(kit: Experiments, directories: list[str]) -> list[str]:
    edit(kit.root / directories[1] / "shard-manifest.json", completedShardKeys=[])
    return directories


def break_records(kit: Experiments, directories: list[str]) -> list[str]:
    (kit.root / directories[0] / "plain/results.jsonl").write_text("")
    return directories


def break_foreign(kit: Experiments, directories: list[str]) -> list[str]:
    first, second = (kit.root / name / "plain/results.jsonl" for name in directories[:2])
    second.write_text(second.read_text() + first.read_text())
    return directories


def break_run_id(kit: Experiments, directories: list[str]) -> list[str]:
    edit(kit.root / directories[1] / "shard-manifest.json", experiment__runId="other")
    return directories


def break_experiment_hash(kit: Experiments, directories: list[str]) -> list[str]:
    edit(kit.root / directories[1] / "shard-manifest.json", experiment__experimentHash="0" * 16)
    return directories


def break_digest(kit: Experiments, directories: list[str]) -> list[str]:
    edit(kit.root / directories[1] / "shard-manifest.json", experiment__planDigest="0" * 16)
    return directories


def break_config_hash(kit: Experiments, directories: list[str]) -> list[str]:
    # The two stimuli of the first eval lie in two shards.
    path = kit.root / directories[1] / "plain/run-summary.jsonl"
    path.write_text("".join(json.dumps({**item, "configHash": "0" * 16}) + "\n" for item in kit.records(path)))
    return directories


def break_plan(kit: Experiments, directories: list[str]) -> list[str]:
    edit(kit.root / directories[1] / "plan-snapshot.json", vallyVersion="9.9.9")
    return directories


def break_directory(kit: Experiments, directories: list[str]) -> list[str]:
    (kit.root / "plain-directory").mkdir()
    return [*directories, "plain-directory"]


def break_manifest(kit: Experiments, directories: list[str]) -> list[str]:
    (kit.root / directories[0] / "shard-manifest.json").write_text("{")
    return directories


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_missing, "missing shard keys: 4, first second/eval.yaml::plain::default-model::three::trial-0"),
        (break_twice, "shard key run twice: first/eval.yaml::plain::default-model::one::trial-0"),
        (break_doubled, "shard key run twice: first/eval.yaml::plain::default-model::one::trial-0"),
        (break_status, "skilled/results.jsonl:1: /status must be success, error or skipped, not 'odd'"),
        (break_incomplete, "shard 2 of 3 is incomplete"),
        (break_records, "shard 1 of 3 is incomplete"),
        (
            break_foreign,
            "shard 2 of 3 has records that are not its own: 2, first first/eval.yaml::plain::default-model::one",
        ),
        (break_run_id, "shards differ in run id: r (vally-experiment-results/r/shard-1-of-3) and other ("),
        (break_experiment_hash, "shards differ in experiment hash: "),
        (break_digest, "shards differ in plan digest: "),
        (break_config_hash, "shards differ in config hash of first/eval.yaml, plain: "),
        (break_plan, "plan snapshots differ: "),
        (break_directory, "plain-directory is not a shard directory"),
        (break_manifest, "shard-1-of-3 is not a shard directory"),
    ],
)
def test_each_broken_set_of_shards_has_its_own_error(kit: Experiments, damage: Any, message: str) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = merge(kit, damage(kit, shards(kit)))
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert not (kit.root / "whole").exists()


def test_absent_shards_are_named(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    directories = shards(kit)
    assert "absent shards: 1, 3" in merge(kit, directories[1:2]).stderr


def test_where_the_output_may_lie(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    directories = shards(kit)
    inside = kit.vally("experiment", "merge", *directories, "-o", f"{directories[0]}/whole")
    assert (inside.exit_code, "lies inside the shard directory" in inside.stderr) == (1, True)
    (kit.root / "taken").mkdir()
    (kit.root / "taken/file").touch()
    taken = kit.vally("experiment", "merge", *directories, "-o", "taken")
    assert (taken.exit_code, "output directory taken is not empty" in taken.stderr) == (1, True)
    file = kit.vally("experiment", "merge", *directories, "-o", "taken/file")
    assert (file.exit_code, "output directory taken/file is a file" in file.stderr) == (1, True)


def test_a_shard_of_nothing_is_a_shard(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    directories = shards(kit, 5)
    assert (kit.root / directories[4] / "shard-manifest.json").is_file()
    assert merge(kit, directories).exit_code == 0


def test_an_empty_shard_is_reported_like_any_other(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = kit.run("--shard", "4/4", "--run-id", "r", "--html", "--junit")
    assert (result.exit_code, "SKIPPED  nothing was run" in result.stdout) == (0, True), result.stdout
    assert "failed and is disabled" not in result.stdout + result.stderr
    left = {path.name for path in (kit.root / "vally-experiment-results/r/shard-4-of-4").iterdir()}
    assert {"report.md", "report.html", "plain", "skilled"} <= left
    assert not {"eval-results.md", "eval-results.junit.xml"} & left


def test_an_empty_shard_passes_nowhere(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = kit.run("--shard", "4/4", "--run-id", "r", "--html", "--require-pass", "--output", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["passed"], document["totals"]["trials"], document["exitCode"]) == (False, 0, 0)
    place = kit.root / "vally-experiment-results/r/shard-4-of-4"
    assert "**⏭️ NOTHING RUN** · " in (place / "report.md").read_text()
    assert "Nothing was run" in (place / "report.html").read_text()
    assert "SKIPPED" in (place / "eval-results.html").read_text()
    for text in (result.stderr, *(path.read_text() for path in place.glob("*.*") if path.suffix in (".md", ".html"))):
        assert "PASSED" not in text
        assert "every variant passes" not in text
    shown = kit.vally("show", str(place))
    assert (shown.exit_code, "nothing was run" in shown.stderr) == (1, True)
    assert json.loads(kit.vally("runs", str(place), "--output", "json").stdout)["runs"][0]["verdict"] == "skipped"
    assert kit.vally("runs", str(place), "--failed").stdout.startswith("no runs")


def test_filters_that_match_nothing_are_an_error_in_every_shard(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    for shard in ("1/2", "2/2"):
        result = kit.run("--shard", shard, "--run-id", "r", "--stimulus", "nope")
        assert (result.exit_code, "error: no stimulus matches" in result.stderr) == (1, True)
    assert not (kit.root / "vally-experiment-results").exists()


def test_a_contaminated_arm_stays_so_when_shards_are_merged(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "one", metadata={"otherSkills": ["foreign"]})
    result = merge(kit, shards(kit))
    assert result.exit_code == 1
    assert "skill 'foreign', which it should not have [arm-contaminated]" in result.stderr


def test_merging_says_when_nobody_knows_what_agents_loaded(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    directories = shards(kit, 4)
    for directory in directories[1::2]:
        (kit.root / directory / "experiment-summary.json").unlink()
    result = merge(kit, directories)
    # The last one is left without a stimulus.
    assert result.stderr == (
        f"warning: {directories[1]}: without experiment-summary.json it is not known whether arms were contaminated\n"
    )
    assert result.exit_code == 0
