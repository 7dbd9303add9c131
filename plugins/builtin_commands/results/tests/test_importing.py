"""What `vally ingest` does with run directories, on both databases."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from vally import VallyError
from vally.testing import run_cli
from vally_command_results.importing import importer
from vally_command_results.store import opening, schema, versions


def results(done: Any) -> list[str]:
    return [run.result for run in done.runs]


def version(kit: Any) -> int:
    with kit.store.reading() as connection:
        return int(kit.store.data_version(connection))


def rows(kit: Any, table: Any) -> int:
    with kit.store.reading() as connection:
        return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def test_a_run_is_imported_once(kit: Any) -> None:
    kit.run()
    first = kit.ingest()
    assert (results(first), first.outcomes) == (["imported"], 5)
    assert first.runs[0].counts == {"pass": 3, "fail": 1, "error": 1}
    before = version(kit)
    assert results(kit.ingest()) == ["unchanged"]
    shutil.move(kit.root / "runs/one", kit.root / "runs/renamed")
    assert results(kit.ingest()) == ["unchanged"]
    shutil.copytree(kit.root / "runs/renamed", kit.root / "elsewhere/deep/er")
    assert results(kit.ingest("elsewhere")) == ["unchanged"]
    assert version(kit) == before


def test_the_threshold_of_the_eval_decides(kit: Any) -> None:
    kit.run()
    kit.ingest()
    # Half of the graders passed in the failing trial; its own word for it does not matter.
    items = kit.get("/outcomes", stimulus="writes-json")["items"]
    assert {item["trialIndex"]: (item["verdict"], item["score"]) for item in items} == {
        0: ("pass", 1.0),
        1: ("fail", 0.5),
        2: ("pass", 1.0),
    }


def test_a_stimulus_counts_once_however_many_models_ran_it(kit: Any, trials: Any) -> None:
    again = [{**item, "model": "other", "itemId": f"other {item['itemId']}"} for item in trials]
    elsewhere = {**trials[0], "evalFilePath": "other/eval.yaml", "itemId": "elsewhere"}
    kit.run(records=[*trials, *again, elsewhere])
    kit.ingest()
    (run,) = kit.get("/runs")["items"]
    assert (run["models"], run["outcomeCount"], run["stimulusCount"]) == (["gpt-x", "other"], 11, 3)


def test_an_incomplete_run_is_updated_when_it_is_finished(kit: Any, trials: Any, summary: Any) -> None:
    manifest = {"startedAt": "2026-07-24T01:00:00.000Z", "options": {"workers": 5}}
    kit.run(records=trials[:2])
    kit.write("runs/one/run-manifest.json", text=json.dumps(manifest))
    kit.ingest()
    (before,) = kit.get("/runs")["items"]
    assert (before["verdict"], before["outcomeCount"]) == ("incomplete", 2)
    ids = {item["itemId"]: item["id"] for item in kit.get("/outcomes")["items"]}
    kit.run(records=[*trials, summary()])
    assert results(kit.ingest()) == ["updated"]
    (after,) = kit.get("/runs")["items"]
    assert (after["id"], after["verdict"], after["outcomeCount"]) == (before["id"], "fail", 5)
    now = {item["itemId"]: item["id"] for item in kit.get("/outcomes")["items"]}
    assert ids.items() <= now.items()


def test_a_stale_copy_never_wins(kit: Any, trials: Any, summary: Any) -> None:
    kit.run()
    kit.ingest()
    kit.run(records=trials[:2])
    # The records alone say when it began; so this is another run unless a manifest tells the same start.
    kit.write("runs/one/run-manifest.json", text=json.dumps({"startedAt": "2026-07-24T01:00:00.000Z"}))
    done = kit.ingest()
    assert [(run.result, run.message) for run in done.runs] == [("unchanged", "older than what is stored")]
    kit.run(records=[*trials[:3], summary(completedAt="2026-07-24T01:01:00.000Z")])
    assert results(kit.ingest()) == ["unchanged"]
    kit.run(records=[*trials[:3], summary(completedAt="2026-07-24T09:01:00.000Z")])
    assert results(kit.ingest()) == ["updated"]
    assert rows(kit, schema.outcomes) == 3


def test_records_of_any_age_are_read(kit: Any) -> None:
    kit.write(
        "runs/old/x/results.jsonl",
        [
            {"trajectory": {"output": "o", "stimulus": {"name": "s"}}, "gradeResult": {"passed": True, "score": 1}},
            {"status": "ok", "stimulus": "s", "model": "m", "gradeResult": {"passed": False, "score": 0}},
            {"trajectory": {"output": "o"}},
            {"type": "run-summary", "status": "completed"},
            {"type": "something-else", "x": 1},
        ],
    )
    assert results(kit.ingest()) == ["imported"]
    items = sorted(kit.get("/outcomes")["items"], key=lambda item: (item["verdict"] != "pass", item["verdict"]))
    assert [(item["stimulus"], item["trialIndex"], item["verdict"]) for item in items] == [
        ("s", 0, "pass"),
        ("s", 0, "fail"),
        ("(unnamed)", 0, "ungraded"),
    ]
    assert items[0]["itemId"] == "(unknown)::(unknown)::(unknown)::s::trial-0"
    assert rows(kit, schema.raw_records) == 5


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ('{"type": "trial-result", "status": "odd"}\n', "line 6: status must be success, error or skipped, not 'odd'"),
        ("{broken\n", "line 6: not valid JSON"),
        ("[1]\n", "line 6: not a JSON object"),
    ],
)
def test_a_bad_line_fails_its_run_and_no_other(kit: Any, trials: Any, summary: Any, damage: str, message: str) -> None:
    kit.run("runs/good", [trials[0], summary(runId="other")])
    path = kit.run("runs/bad", trials)
    path.write_text(path.read_text() + damage + json.dumps(summary()) + "\n")
    done = kit.ingest()
    assert results(done) == ["failed", "imported"]
    assert message in (done.runs[0].message or "")
    assert (rows(kit, schema.runs), rows(kit, schema.outcomes)) == (1, 1)


@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_a_torn_last_line_of_a_killed_run_is_left_out(kit: Any, trials: Any, end: str) -> None:
    path = kit.run(records=trials)
    path.write_text(path.read_text() + '{"type": "trial-res' + end)
    done = kit.ingest()
    assert (results(done), done.outcomes) == (["imported"], 5)
    assert done.warnings == ["runs/one/results.jsonl: line 6 is torn and was left out"]


@pytest.mark.parametrize(("end", "message"), [("", "the last line is torn"), ("\n", "line 7: not valid JSON")])
def test_a_torn_line_after_the_summary_fails_the_run(
    kit: Any, trials: Any, summary: Any, end: str, message: str
) -> None:
    path = kit.run(records=[*trials, summary()])
    path.write_text(path.read_text() + '{"type": "trial-res' + end)
    (run,) = kit.ingest().runs
    assert (run.result, message in run.message) == ("failed", True)


def test_a_run_that_fails_in_the_middle_leaves_nothing(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.run()
    kit.ingest()
    before = (version(kit), rows(kit, schema.outcomes))
    kit.run(records=[])
    text = (kit.root / "runs/one/results.jsonl").read_text()
    assert not text
    kit.run("runs/two")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    (kit.root / "runs/two/results.jsonl").write_text(
        (kit.root / "runs/two/results.jsonl").read_text().replace("run-1", "run-2")
    )
    monkeypatch.setattr(importer.RunImport, "_extra_files", fail)
    done = kit.ingest()
    assert [(run.result, run.message) for run in done.runs] == [("failed", "cannot be read: No space left on device")]
    assert (version(kit), rows(kit, schema.outcomes)) == before
    monkeypatch.undo()
    assert results(kit.ingest()) == ["imported"]


def test_options_leave_runs_out(kit: Any, trials: Any, summary: Any) -> None:
    kit.run(records=trials[:2])
    assert [(run.result, run.message) for run in kit.ingest(complete_only=True).runs] == [("skipped", "incomplete")]
    assert results(kit.ingest(dry_run=True)) == ["imported"]
    assert rows(kit, schema.runs) == 0
    kit.run(records=[*trials, summary()])
    kit.ingest()
    kit.run(records=[*trials, trials[0], summary(completedAt="2027-01-01T00:00:00.000Z")])
    assert results(kit.ingest(skip_existing=True)) == ["unchanged"]
    assert results(kit.ingest()) == ["updated"]


def test_repeated_items_are_kept_apart(kit: Any, trials: Any, summary: Any) -> None:
    kit.run(records=[trials[0], trials[0], summary()])
    assert kit.ingest().outcomes == 2
    assert len({item["id"] for item in kit.get("/outcomes")["items"]}) == 2


def experiment(kit: Any, trials: Any, summary: Any, variants: tuple[str, ...] = ("off", "on")) -> None:
    head = {"runId": "exp-1", "name": "skill-check", "variantNames": [*variants, "unselected"], "baseline": "off"}
    plan = {
        "type": "experiment-plan-snapshot",
        "evals": [{"evalName": "config-eval", "evalFile": "e", "variant": "unselected"}],
    }
    kit.write("runs/x/plan-snapshot.json", text=json.dumps(plan))
    kit.write("runs/x/shard-manifest.json", text=json.dumps({"experiment": head, "shard": {"index": 1, "count": 1}}))
    for variant in variants:
        block = {"name": "skill-check", "runId": "exp-1", "variant": variant, "evalFile": "e", "baseline": "off"}
        kit.run(
            f"runs/x/{variant}", [{**item, "variant": variant, "experiment": block} for item in trials] + [summary()]
        )
    kit.write("runs/x/unselected/results.jsonl")


def test_the_variants_of_an_experiment_are_runs_of_a_group(kit: Any, trials: Any, summary: Any) -> None:
    experiment(kit, trials, summary)
    assert results(kit.ingest()) == ["imported"] * 3
    items = {item["variant"]: item for item in kit.get("/runs")["items"]}
    assert {name: (item["name"], item["isBaseline"], item["outcomeCount"]) for name, item in items.items()} == {
        "off": ("skill-check / off", True, 5),
        "on": ("skill-check / on", False, 5),
        "unselected": ("skill-check / unselected", False, 0),
    }
    assert {item["group"] for item in items.values()} == {"exp-1"}
    siblings = kit.get(f"/runs/{items['on']['id']}")["siblings"]
    assert [item["variant"] for item in siblings] == ["off", "on", "unselected"]
    # A variant directory named by itself is the same run.
    assert results(kit.ingest("runs/x/on")) == ["unchanged"]


def test_a_variant_that_was_not_selected_is_not_going_on(kit: Any, trials: Any, summary: Any) -> None:
    experiment(kit, trials, summary)
    path = kit.root / "runs/x/shard-manifest.json"
    keys = ["e::on::gpt-x::s::trial-0", "e::off::gpt-x::s::trial-0"]
    for completed, complete in ((keys[:1], False), (keys, True)):
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "selectedShardKeys": keys, "completedShardKeys": completed})
        )
        shutil.rmtree(kit.root / "runs/y", ignore_errors=True)
        shutil.copytree(kit.root / "runs/x/", kit.root / "runs/y")
        kit.write("runs/y/run-manifest.json", text=json.dumps({"startedAt": f"2026-07-24T0{int(complete)}:00:00Z"}))
        kit.ingest("runs/y")
        run = next(item for item in kit.get("/runs", sort="-startedAt")["items"] if item["variant"] == "unselected")
        # It ran nothing, so that it did not pass either.
        assert (run["complete"], run["verdict"], run["outcomeCount"]) == (complete, "incomplete", 0)
    found = [item["variant"] for item in kit.get("/runs", verdict="pass,fail,error,partial")["items"]]
    assert "unselected" not in found
    assert kit.get("/runs", verdict="incomplete")["page"]["total"] == 2


def test_a_variant_whose_file_was_cut_never_wins(kit: Any, trials: Any, summary: Any) -> None:
    experiment(kit, trials, summary)
    kit.write("runs/x/run-manifest.json", text=json.dumps({"startedAt": "2026-07-24T01:00:00.000Z"}))
    block = {"name": "skill-check", "runId": "exp-1", "variant": "on", "evalFile": "e", "baseline": "off"}
    keys = [f"e::on::gpt-x::s::trial-{index}" for index in range(len(trials))]
    records = [
        {**item, "variant": "on", "experiment": block, "itemId": key} for item, key in zip(trials, keys, strict=True)
    ]
    head = {"runId": "exp-1", "name": "skill-check", "baseline": "off", "variantNames": ["off", "on", "unselected"]}
    manifest = {
        "experiment": head, "shard": {"index": 1, "count": 1}, "selectedShardKeys": keys, "completedShardKeys": keys,
    }  # fmt: skip
    kit.write("runs/x/shard-manifest.json", text=json.dumps(manifest))
    # Killed before the summary, but all is there.
    kit.run("runs/x/on", records)
    kit.ingest()
    kit.run("runs/x/on", records[:2])
    done = {run.source: (run.result, run.message) for run in kit.ingest().runs}
    assert done["runs/x/on"] == ("unchanged", "older than what is stored")
    assert rows(kit, schema.outcomes) == 10


def test_a_cut_file_is_known_whatever_signs_the_name_of_its_variant_has(kit: Any, trials: Any) -> None:
    variant = "on::off"
    keys = [f"e::{variant}::gpt-x::s::trial-{index}" for index in range(len(trials))]
    block = {"name": "x", "runId": "exp-1", "variant": variant, "evalFile": "e"}
    records = [
        {**item, "variant": variant, "experiment": block, "itemId": key} for item, key in zip(trials, keys, strict=True)
    ]
    head = {"runId": "exp-1", "name": "x", "baseline": None, "variantNames": [variant, "other"]}
    manifest = {"experiment": head, "selectedShardKeys": keys, "completedShardKeys": keys}
    plan = {"evals": [{"evalFile": "e", "variant": name} for name in (variant, "other")]}
    kit.write("runs/x/shard-manifest.json", text=json.dumps(manifest))
    kit.write("runs/x/plan-snapshot.json", text=json.dumps(plan))
    for kept, complete in ((2, False), (len(records), True)):
        kit.run("runs/x/one", records[:kept])
        kit.ingest()
        (run,) = kit.get("/runs")["items"]
        assert (run["outcomeCount"], run["complete"]) == (kept, complete)


def test_comparisons_are_imported_once(kit: Any, trials: Any, summary: Any) -> None:
    experiment(kit, trials, summary)
    record = {
        "type": "comparison",
        "experimentName": "skill-check",
        "baseline": "off",
        "treatment": "on",
        "evalFile": "e",
        "model": "m",
        "summary": {
            "trialCount": 6,
            "erroredCount": 0,
            "meanScore": 0.27,
            "ciLow": 0.05,
            "ciHigh": None,
            "winRate": 0.5,
        },
        "stimuli": [],
    }
    kit.write("runs/x/comparisons.jsonl", [record])
    kit.write("runs/x/notes.jsonl", [{"type": "note"}])
    assert kit.ingest().comparisons == 1
    assert kit.ingest().comparisons == 0
    (item,) = kit.get("/comparisons")["items"]
    assert (item["group"], item["treatment"], item["ciLow"], item["ciHigh"]) == ("exp-1", "on", 0.05, None)
    assert kit.get(f"/comparisons/{item['id']}")["record"] == record


def test_links_are_not_followed_and_depth_is_bounded(kit: Any, tmp_path: Path) -> None:
    kit.run("outside/one")
    (kit.root / "runs/link").symlink_to(kit.root / "outside")
    kit.run("runs/1/2/3/4/5/6/7")
    assert kit.ingest().runs == []
    kit.run("runs/1/2/3/4/5/6")
    assert len(kit.ingest().runs) == 1


def test_text_that_databases_refuse_is_stored_without_it(kit: Any, trial: Any) -> None:
    hostile = "a\0b\ud800c\U0001f600"
    kit.run(records=[trial(hostile, 0, output=hostile), trial("huge", 0, durationMs=10**30, trialIndex=1)])
    assert results(kit.ingest()) == ["imported"]
    names = {item["stimulus"] for item in kit.get("/outcomes")["items"]}
    assert names == {"a\ufffdb\ufffdc\U0001f600", "huge"}


def test_both_databases_answer_alike(
    make_store: Callable[[str], Any], kit: Any, trials: Any, summary: Any, tmp_path: Path
) -> None:
    from vally_command_results.store.opening import open_store

    experiment(kit, trials, summary)
    kit.run()
    kit.ingest()
    first = json.dumps(_answers(kit))
    kit.store.close()
    kit.store, kit._default = open_store("reference.db", tmp_path, create=True), None
    kit.ingest()
    assert json.dumps(_answers(kit)) == first


def _answers(kit: Any) -> list[Any]:
    runs = kit.get("/runs")
    paths = ["/runs", "/outcomes", "/trends", "/graders", "/facets", "/comparisons", "/metrics"]
    for item in runs["items"]:
        parts = ("", "/outcomes", "/matrix", "/ranking", "/graders", "/tools", "/distribution")
        paths += [f"/runs/{item['id']}{part}" for part in parts]
    for item in kit.get("/outcomes")["items"]:
        paths += [f"/outcomes/{item['id']}{part}" for part in ("", "/diff", "/tools")]
    return [_without_import_times(kit.get(path)) for path in paths]


def _without_import_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_import_times(item) for key, item in value.items() if key != "importedAt"}
    return [_without_import_times(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def older_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SQLite store whose tables are behind those of the program."""
    opening.open_store("history.db", tmp_path, create=True).close()
    monkeypatch.setattr(opening, "head_version", lambda: "later")
    return tmp_path / "history.db"


def test_an_older_store_that_may_not_be_written_is_refused(older_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = older_store.read_bytes()
    monkeypatch.setattr(opening, "_may_be_written", lambda _: False)
    with pytest.raises(VallyError, match="is of an older version") as caught:
        opening.open_store("history.db", older_store.parent, create=False)
    assert list(caught.value.hints) == ["run: vally ingest --store history.db <DIRECTORY>"]
    assert older_store.read_bytes() == before


def test_an_older_store_that_may_be_written_is_brought_up(older_store: Path) -> None:
    opening.open_store("history.db", older_store.parent, create=False).close()


def test_the_backup_of_an_older_store_holds_what_is_only_in_its_log(
    older_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "head_version", lambda: "later")
    with contextlib.closing(sqlite3.connect(older_store)) as writer:
        # As long as this connection is open, the change stays in the log.
        writer.execute("UPDATE store_meta SET value = '7' WHERE key = 'data_version'")
        writer.commit()
        opening.open_store("history.db", older_store.parent, create=False).close()
    (backup,) = older_store.parent.glob("history.db.bak-*")
    with contextlib.closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("SELECT value FROM store_meta WHERE key = 'data_version'").fetchall() == [("7",)]


def test_an_older_store_without_a_backup_stays_as_it_is(older_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (older_store.parent / f"history.db.bak-{versions.head_version()}").mkdir()
    monkeypatch.setattr(versions, "head_version", lambda: "later")
    with pytest.raises(VallyError, match=r"cannot open store 'history\.db': unable to open database file"):
        opening.open_store("history.db", older_store.parent, create=False)


def test_a_store_that_cannot_be_made_leaves_no_empty_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        with pytest.raises(VallyError, match="cannot open store"):
            opening.open_store("new.db", disk, create=True)
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_the_closing_line_tells_what_the_store_holds(tmp_path: Path) -> None:
    """Those of earlier imports too; what was imported now stands in the lines above."""

    def ingest(name: str) -> str:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        (directory / "results.jsonl").write_text(json.dumps({"runId": name, "trajectory": {"output": ""}}) + "\n")
        return run_cli(["ingest", name, "--store", "s.db"], cwd=tmp_path).stdout.splitlines()[-1]

    assert ingest("one") == "1 run: 1 imported; 1 outcome in s.db"
    assert ingest("two") == "1 run: 1 imported; 2 outcomes in s.db"
    assert ingest("two") == "1 run: 1 unchanged; nothing was written to s.db"
