"""`vally experiment run`."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from experiments import Experiments

from vally import GraderResult
from vally.testing import ScriptedJudge


@pytest.fixture
def kit(tmp_path: Path) -> Experiments:
    return Experiments(tmp_path)


KEY = "first/eval.yaml::plain::default-model::one::trial-0"


def test_every_variant_has_its_records_and_the_report_shows_the_difference(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    result = kit.run("--html")
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in kit.directory.iterdir()}
    assert {
        "report.md", "report.html", "plan-snapshot.json", "shard-manifest.json", "experiment-summary.json", "plain",
        "skilled",
    } <= names  # fmt: skip
    *trials, summary = kit.records(kit.directory / "plain/results.jsonl")
    assert (len(trials), summary["type"], summary["passed"]) == (6, "run-summary", False)
    first = next(item for item in trials if item["shardKey"] == KEY)
    block = first["experiment"]
    assert (block["name"], block["variant"], block["baseline"]) == ("trial of variants", "plain", "plain")
    assert block["evalFile"] == "first/eval.yaml"
    assert first["itemId"] == KEY
    assert kit.records(kit.directory / "skilled/results.jsonl")[-1]["passed"] is True
    report = (kit.directory / "report.md").read_text()
    assert "**✅ COMPLETED** · 2 variants × 2 evals · 12 trials · 0 errors" in report
    assert "| plain (baseline) | default-model | 0/2 | 0.00 | 0.0% |" in report
    assert "| first / one | 0.00 (0/2) | 1.00 (2/2) | +1.00 |" in report
    assert "- **first / one** in plain (baseline): " in report
    assert "## Plan" in report
    html = (kit.directory / "report.html").read_text()
    assert html.count("<svg") == 2
    assert "http" not in html.replace("http-equiv", "")


def test_require_pass_looks_at_every_variant(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    assert kit.run("--require-pass").exit_code == 1
    assert kit.run("--require-pass", "--variant", "skilled").exit_code == 0


def test_documents_are_laid_out_as_all_json_files(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.run("--threshold", "1.0")
    for path in kit.directory.glob("*.json"):
        text = path.read_text()
        assert text.startswith('{\n  "type": "')
        assert text.endswith("}\n")
        # Whole numbers have no fraction, as in records.
        assert not re.search(r"\d\.0\b(?!\.)", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)), path.name
    assert {item["threshold"] for item in kit.document("plan-snapshot.json")["evals"]} == {1}


def test_a_variant_is_found_however_its_letters_are_composed(kit: Experiments) -> None:
    kit.make({"caf\u00e9": "wrong", "skilled": "right"})
    result = kit.run("--variant", "cafe\u0301")
    assert result.exit_code == 0, result.stderr
    assert "6 trials" in result.stdout


def test_the_documents_agree_with_each_other(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.run("--run-id", "r-1")
    plan, manifest, summary = map(
        kit.document, ("plan-snapshot.json", "shard-manifest.json", "experiment-summary.json")
    )
    assert plan["planDigest"] == manifest["experiment"]["planDigest"]
    assert (manifest["type"], manifest["shard"]["count"]) == ("experiment-shard-manifest", 1)
    assert manifest["experiment"]["variantNames"] == ["plain", "skilled"]
    assert manifest["experiment"]["runId"] == summary["runId"] == "r-1"
    assert sorted(manifest["selectedShardKeys"]) == sorted(manifest["completedShardKeys"])
    assert KEY in manifest["selectedShardKeys"]
    assert [item["name"] for item in summary["variants"]] == ["plain", "skilled"]
    assert (summary["passed"], summary["partial"], summary["comparisons"]) == (True, False, [])
    first = plan["evals"][0]
    assert (first["evalFile"], first["runs"], first["plannedStimulusNames"]) == ("first/eval.yaml", 2, ["one", "two"])
    assert first["stimuli"][0]["graders"] == [{"name": "output-contains", "type": "output-contains"}]
    (provenance, _) = kit.records(kit.directory / "plain/run-summary.jsonl")
    assert provenance["type"] == "experiment-run-summary"
    assert provenance["resolvedDefaults"]["runs"] == 2
    hashes = {
        item["evalHash"]
        for name in ("plain", "skilled")
        for item in kit.records(kit.directory / name / "run-summary.jsonl")
    }
    assert len(hashes) == 2


def test_json_is_the_summary_with_directory_and_exit_code(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = kit.run("--output", "json")
    document = json.loads(result.stdout)
    assert {key: document[key] for key in ("type", "passed", "exitCode")} == {
        "type": "experiment-summary", "passed": True, "exitCode": 0,
    }  # fmt: skip
    assert document["runDir"].startswith("vally-experiment-results/")


def test_jsonl_prints_the_records_of_all_variants(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"}, runs=1)
    lines = [json.loads(line) for line in kit.run("--output", "jsonl").stdout.splitlines()]
    trials = [line for line in lines if line["type"] == "trial-result"]
    assert {line["variant"] for line in trials} == {"plain", "skilled"}
    assert len(trials) == 6


def test_a_dry_run_prints_plans_and_writes_nothing(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = kit.run("--dry-run")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["Experiment: trial of variants", "Baseline:   plain", "Plans:      4"]
    assert lines[4:8] == [
        "── plain (baseline) ──", "  Eval:        first", "  File:        first/eval.yaml",
        "  Model:       default-model",
    ]  # fmt: skip
    assert not (kit.root / "vally-experiment-results").exists()
    document = json.loads(kit.run("--dry-run", "--output", "json").stdout)
    assert (document["type"], len(document["plans"]), len(document["items"])) == ("experiment-plan", 4, 12)


@pytest.mark.parametrize(
    ("words", "items"),
    [
        (["--variant", "skilled"], 6),
        (["--eval-filter", "second/eval.yaml"], 4),
        (["--eval-filter", "f*/eval.yaml"], 8),
        (["--eval-filter", "first", "--variant", "plain"], 4),
        (["--stimulus", "one"], 4),
    ],
)
def test_filters(kit: Experiments, words: list[str], items: int) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    assert len(json.loads(kit.run("--dry-run", "--output", "json", *words).stdout)["items"]) == items


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (["--variant", "skiled"], 1, "did you mean 'skilled'?"),
        (["--eval-filter", "nowhere/*.yaml"], 1, "eval filters matched zero files"),
        (["--stimulus", "none"], 1, "no stimulus matches"),
        (["--shard", "1/2"], 2, "--shard needs --run-id"),
        (["--shard", "3/2", "--run-id", "r"], 2, "is not of the form i/n"),
        (["--shard", "0/2", "--run-id", "r"], 2, "is not of the form i/n"),
        (["--shard", "1/2", "--run-id", "r", "--compare"], 2, "cannot be combined with --shard"),
        (["--skip-grade", "--require-pass"], 2, "--require-pass needs grades"),
        (["--param", "x=1"], 0, "--param x is not used"),
    ],
)
def test_wrong_words(kit: Experiments, words: list[str], exit_code: int, message: str) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    result = kit.run(*words)
    assert (result.exit_code, message in result.stderr) == (exit_code, True), result.stderr


def test_a_missing_file_and_a_missing_baseline_are_said_before_anything_runs(kit: Experiments) -> None:
    missing = kit.vally("experiment", "run", "none.yaml")
    assert (missing.exit_code, "'none.yaml' does not exist" in missing.stderr) == (1, True)
    kit.make({"plain": "right", "skilled": "right"}, extra={"baseline": None})
    result = kit.run("--compare")
    assert (result.exit_code, "--compare needs a baseline [baseline-required]" in result.stderr) == (1, True)
    assert not (kit.root / "vally-experiment-results").exists()


def test_drift_is_refused_with_both_values(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"}, extra={"vary": ["/environment/skills"]})
    result = kit.run()
    assert result.exit_code == 1
    assert "variants 'plain' and 'skilled' differ outside vary: /environment/files" in result.stderr
    assert "fixtures/plain" in result.stderr
    assert "fixtures/skilled" in result.stderr
    assert not (kit.root / "vally-experiment-results").exists()


def test_a_finding_that_all_variants_share_is_said_once(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    document = json.loads((kit.root / "first/eval.yaml").read_text())
    document["stimuli"][0]["graders"][0]["name"] = "A Name Of Old"
    kit.json("first/eval.yaml", document)
    assert kit.run("--dry-run").stderr.count("deprecated-grader-name") == 1


def test_unselected_variants_have_an_empty_file(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.run("--variant", "plain")
    assert (kit.directory / "skilled/results.jsonl").read_bytes() == b""


def test_errors_make_the_exit_code_and_are_no_failures(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "one", error={"message": "the agent is away", "code": "x", "retryable": False})
    assert kit.run().exit_code == 1
    report = (kit.directory / "report.md").read_text()
    assert "| first / one | 1.00 (2/2) | – 2 errors | – |" in report
    assert "- **first / one** in skilled: error: the agent is away" in report


def test_an_arm_that_had_something_else_is_not_passed(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    for name in ("one", "two", "three"):
        kit.fixture("skilled", name, metadata={"mcpServers": [], "otherSkills": ["built-in"]})
        kit.fixture("plain", name, metadata={"mcpServers": ["notes"], "otherSkills": ["built-in"]})
    result = kit.run()
    assert result.exit_code == 1
    assert "[arm-contaminated]" in result.stderr
    assert "MCP server 'notes', which it should not have" in result.stderr
    assert "loaded: skills: built-in; mcpServers: notes" in result.stderr
    summary = kit.document("experiment-summary.json")
    assert {item["name"]: item["passed"] for item in summary["variants"]} == {"plain": False, "skilled": True}
    assert summary["passed"] is False
    assert "⚠️ CONTAMINATED" in (kit.directory / "report.md").read_text()


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"otherSkills": ["foreign"]}, "skill 'foreign', which it should not have"),
        ({"instructions": ["/etc/AGENTS.md"]}, "instructions of '/etc/AGENTS.md', which is outside the workspace"),
        ({"skillsLoaded": ["mine"]}, "skill 'mine', which it should not have"),
    ],
)
def test_what_contaminates_an_arm(kit: Experiments, metadata: dict[str, Any], reason: str) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "one", metadata=metadata)
    assert reason in kit.run().stderr


def by_answer(request: Any) -> Any:
    first, second = request.user_message.find("right"), request.user_message.find("wrong")
    verdict = "equal" if -1 in (first, second) else "A-much-better" if first < second else "B-much-better"
    criteria = [{"criterion": "c", "verdict": verdict, "reasoning": "r"}] * 2
    return {"criteria": criteria, "overall_verdict": verdict, "overall_reasoning": "r"}


def test_compare_asks_the_judge_and_fills_the_report(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    result = kit.run("--compare", plugins=[ScriptedJudge(by_answer).record()])
    assert result.exit_code == 0, result.stderr
    records = kit.records(kit.directory / "comparisons.jsonl")
    assert [(item["treatment"], item["evalFile"]) for item in records] == [
        ("skilled", "first/eval.yaml"), ("skilled", "second/eval.yaml"),
    ]  # fmt: skip
    assert records[0]["summary"]["wins"] == 4
    assert kit.document("experiment-summary.json")["comparisons"][0]["summary"]["meanScore"] == 1
    assert (
        "| skilled | first/eval.yaml | +1.00 | [+1.00, +1.00] | 4/0/0 | 0 | 0 | Credibly better |"
        in (kit.directory / "report.md").read_text()
    )


@pytest.mark.parametrize(("words", "tables"), [((), 1), (("--no-step-summary",), 0)])
def test_a_workflow_gets_the_comparison_too(kit: Experiments, words: tuple[str, ...], tables: int) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    path = kit.root / "summary.md"
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(path)}
    kit.run("--compare", *words, plugins=[ScriptedJudge(by_answer).record()], env=environ)
    text = path.read_text() if path.exists() else ""
    assert text.count("## Vally eval results") == text.count("## Comparison (judge ") == tables
    assert text.count("| plain | skilled | first/eval.yaml | +1.00 |") == tables


def test_a_regression_is_named_with_its_eval(kit: Experiments) -> None:
    """There is one comparison for each eval, and more evals than one may have become worse."""
    kit.make({"plain": "right", "skilled": "wrong"})
    kit.run()
    directory = str(kit.directory.relative_to(kit.root))
    result = kit.vally("compare", directory, "--fail-on-regression", plugins=[ScriptedJudge(by_answer).record()])
    assert result.exit_code == 1
    found = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert found == [
        f"error: plain and skilled, {name}/eval.yaml, default-model: the treatment is credibly worse"
        for name in ("first", "second")
    ]


def test_comparisons_leave_contaminated_arms_out(kit: Experiments) -> None:
    kit.make({"plain": "wrong", "skilled": "right"})
    kit.fixture("skilled", "one", metadata={"otherSkills": ["foreign"]})
    kit.run("--compare", plugins=[ScriptedJudge(by_answer).record()])
    assert [item["evalFile"] for item in kit.records(kit.directory / "comparisons.jsonl")] == ["second/eval.yaml"]


def test_a_result_of_a_hostile_agent_does_no_harm_in_reports(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "one", output="<script>alert(1)</script> \x1b[31m | pipe")
    document = json.loads((kit.root / "first/eval.yaml").read_text())
    document["stimuli"][0]["name"] = "<img src=x onerror=alert(1)> | x"
    kit.json("first/eval.yaml", document)
    kit.run("--html")
    html, report = (kit.directory / "report.html").read_text(), (kit.directory / "report.md").read_text()
    assert "<img src=x" not in html
    assert "<script>" not in html
    assert "\x1b" not in html + report
    row = next(line for line in report.splitlines() if "onerror" in line and line.startswith("|"))
    assert "\\|" in row


def test_grader_errors_are_no_scores(kit: Experiments) -> None:
    from vally import GraderSpec

    class Away:
        def grade(self, input: Any) -> GraderResult:
            raise RuntimeError("away")

    kit.make({"plain": "right", "skilled": "right"}, runs=1)
    document = json.loads((kit.root / "second/eval.yaml").read_text())
    document["stimuli"][0]["graders"] = [{"type": "away"}]
    kit.json("second/eval.yaml", document)
    result = kit.run(plugins=[GraderSpec(name="away", summary="is away", factory=Away)])
    assert result.exit_code == 1
    assert "| second / three | – 1 error | – 1 error | – |" in (kit.directory / "report.md").read_text()


def test_planning_ten_thousand_trials_is_quick(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"}, runs=20)
    stimulus = json.loads((kit.root / "first/eval.yaml").read_text())["stimuli"][0]
    stimuli = [{**stimulus, "name": f"s{number}"} for number in range(25)]
    document = {**json.loads((kit.root / "first/eval.yaml").read_text()), "stimuli": stimuli}
    kit.json("first/eval.yaml", document)
    matrix = {"model": {"path": "/defaults/model", "values": [f"m{number}" for number in range(20)]}}
    kit.json("experiment.yaml", {"name": "large", "evals": ["first/eval.yaml"], "matrix": matrix})
    started = time.process_time()
    result = kit.run("--dry-run", "--output", "json")
    assert len(json.loads(result.stdout)["items"]) == 10_000
    # It takes a quarter of a second; the bound only notices work that grows with the square of the plan.
    assert time.process_time() - started < 10


def test_the_example_shows_what_the_skill_does(kit: Experiments) -> None:
    shutil.copytree(ROOT / "examples/experiment", kit.root, dirs_exist_ok=True)
    result = kit.run()
    assert result.exit_code == 0, result.stderr
    summary = kit.document("experiment-summary.json")
    assert {item["name"]: item["passed"] for item in summary["variants"]} == {"without": False, "with": True}
    assert "| commit-message / bug | 0.50 (0/3) | 1.00 (3/3) | +0.50 |" in (kit.directory / "report.md").read_text()


def test_another_experiment_file_is_another_run(kit: Experiments) -> None:
    """Records that stay name the baseline of before, so that a resumed run would have two."""
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "three", error={"message": "the agent is away", "code": "x", "retryable": False})
    kit.run()
    word = str(kit.directory.relative_to(kit.root))
    results = (kit.directory / "skilled/results.jsonl").read_bytes()
    kit.make({"plain": "right", "skilled": "right"}, extra={"baseline": "skilled"})
    resumed = kit.vally("experiment", "run", "--resume", word)
    assert resumed.exit_code == 1
    assert "error: --resume: 1 file changed since the run began\n  experiment experiment.yaml\n" in resumed.stderr
    assert (kit.directory / "skilled/results.jsonl").read_bytes() == results
    kit.make({"plain": "right", "skilled": "right"})
    assert kit.vally("experiment", "run", "--resume", word).exit_code == 0


def test_what_had_no_result_is_run_again_in_place(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.fixture("skilled", "three", error={"message": "the agent is away", "code": "x", "retryable": False})
    assert kit.run().exit_code == 1
    directory, before = kit.directory, kit.document("shard-manifest.json")
    old = {item.get("itemId"): item for item in kit.records(directory / "skilled/results.jsonl")}
    kit.fixture("skilled", "three")
    word = str(directory.relative_to(kit.root))
    resumed = kit.vally("experiment", "run", "--resume", word)
    assert resumed.exit_code == 0, resumed.stderr
    assert kit.directory == directory
    assert kit.document("shard-manifest.json")["experiment"] == before["experiment"]
    *records, summary = kit.records(directory / "skilled/results.jsonl")
    assert (len(records), summary["passed"], summary["totals"]["errors"]) == (6, True, 0)
    # What had a result is as it was, to the last byte of its meaning.
    assert [item for item in records if item["stimulus"] != "three"] == [
        old[item["itemId"]] for item in records if item["stimulus"] != "three"
    ]
    report = (directory / "report.md").read_text()
    assert "| second / three | 1.00 (2/2) | 1.00 (2/2) | +0.00 |" in report
    assert "Failures and errors" not in report


def test_only_the_run_itself_says_what_is_continued(kit: Experiments) -> None:
    kit.make({"plain": "right", "skilled": "right"})
    kit.run()
    word = str(kit.directory.relative_to(kit.root))
    assert kit.vally("experiment", "run", "experiment.yaml", "--resume", word).exit_code == 2
    assert kit.vally("experiment", "run", "--resume", word, "--seed", "1").exit_code == 2
    assert kit.vally("experiment", "run").exit_code == 2
    kit.vally("eval", "-e", "first/eval.yaml", "--output-dir", "other")
    (run,) = (kit.root / "other").iterdir()
    other = kit.vally("experiment", "run", "--resume", str(run))
    assert (other.exit_code, "is a run of kind 'eval'" in other.stderr) == (1, True)
