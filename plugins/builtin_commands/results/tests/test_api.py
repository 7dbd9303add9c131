"""Every endpoint of the API, on both databases; each answer is checked against the OpenAPI document too."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest


@pytest.fixture
def run_id(kit: Any) -> str:
    kit.run()
    kit.ingest()
    return str(kit.get("/runs")["items"][0]["id"])


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_list_of_runs(kit: Any, run_id: str) -> None:
    page = kit.get("/runs")
    (item,) = page["items"]
    assert page["page"] == {"nextCursor": None, "limit": 100, "hasMore": False, "total": 1}
    shown = {
        key: item[key]
        for key in ("name", "kind", "models", "evalNames", "stimulusCount", "outcomeCount", "passCount", "failCount")
    }
    assert shown == {
        "name": "config-eval",
        "kind": "eval",
        "models": ["gpt-x"],
        "evalNames": ["config-eval"],
        "stimulusCount": 2,
        "outcomeCount": 5,
        "passCount": 3,
        "failCount": 1,
    }
    assert (item["passRate"], item["verdict"], item["durationMs"]) == (0.75, "fail", 161400)
    assert item["startedAt"] == "2026-07-24T01:00:00.000Z"


def test_one_run(kit: Any, run_id: str) -> None:
    run = kit.get(f"/runs/{run_id}")
    assert run["stimuli"] == ["writes-json", "keeps-comments"]
    (evaluation,) = run["evals"]
    assert (evaluation["threshold"], evaluation["scoringApplied"], evaluation["stimuliTotal"]) == (0.9, True, 2)
    assert run["config"]["plan"] is None


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({}, 5),
        ({"status": "error"}, 1),
        ({"verdict": "pass"}, 3),
        ({"verdict": ["pass", "fail"]}, 4),
        ({"verdict": "pass,fail"}, 4),
        ({"stimulus": "writes-json"}, 3),
        ({"stimulus": "writes"}, 0),
        ({"stimulus": "writes-json", "verdict": "fail"}, 1),
        ({"trialIndex": "0"}, 2),
        ({"tag": "area:config"}, 5),
        ({"tag": "area:other"}, 0),
        ({"grader": "output-contains port", "graderPassed": "false"}, 1),
        ({"tool": "bash"}, 4),
        ({"tool": "none"}, 0),
        ({"minScore": "0.6"}, 3),
        ({"maxScore": "0.5"}, 1),
        ({"q": "AWAY"}, 1),
        ({"q": "%"}, 0),
        ({"q": ["no such text", "AWAY"]}, 1),
        ({"q": ["AWAY", "no such text"]}, 1),
        ({"q": "AWAY,no such text"}, 0),
        ({"model": "gpt-x"}, 5),
        ({"model": "other"}, 0),
        ({"evalName": "config-eval"}, 5),
    ],
)
def test_filters_of_outcomes(kit: Any, run_id: str, parameters: dict[str, Any], count: int) -> None:
    assert len(kit.get(f"/runs/{run_id}/outcomes", **parameters)["items"]) == count
    assert kit.get("/outcomes", runId=run_id, **parameters)["page"]["total"] == count


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({"q": "CONFIG"}, 1),
        ({"q": "runs/one"}, 1),
        ({"q": ["x", "CONFIG"]}, 1),
        ({"q": ["CONFIG", "x"]}, 1),
        ({"q": "x"}, 0),
        ({"verdict": "fail"}, 1),
        ({"verdict": "pass"}, 0),
        ({"verdict": "incomplete,partial,error"}, 0),
        ({"kind": "eval"}, 1),
        ({"kind": "experiment"}, 0),
        ({"model": "gpt-x"}, 1),
        ({"since": "2026-07-24T01:00:00Z"}, 1),
        ({"since": "2026-07-24T03:00:00+01:00"}, 0),
        ({"until": "2026-07-23T00:00:00Z"}, 0),
    ],
)
def test_filters_of_runs(kit: Any, run_id: str, parameters: dict[str, Any], count: int) -> None:
    assert kit.get("/runs", **parameters)["page"]["total"] == count


NAMES = {"stimulus": "a,b", "model": "m,odd", "variant": "skill=off,model=a", "evalName": "one, two"}
"""Names with commas; variants of a matrix always have some."""


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        *(({key: name}, 1) for key, name in NAMES.items() if key != "stimulus"),
        ({"stimulus": "a,b"}, 2),
        *(({key: name.replace(",", "\\,")}, 1) for key, name in NAMES.items()),
        ({"stimulus": "a"}, 1),
        ({"stimulus": "a,other"}, 1),
        ({"stimulus": "a\\,b,a"}, 2),
        ({"stimulus": ["a\\,b", "a"]}, 2),
        ({"variant": "skill=off"}, 0),
        ({"tag": "p:x,y"}, 1),
        ({"tag": "p:x\\,y"}, 1),
        ({"tag": "p:other,p:x\\,y"}, 1),
        ({"tag": "p:y"}, 0),
        ({"tag": "a:b:c"}, 1),
    ],
)
def test_filters_by_names_with_commas(kit: Any, trial: Any, parameters: dict[str, Any], count: int) -> None:
    tags = {"p": ["x,y"], "a:b": ["c"]}
    plain = {**trial("a", 0, True), "model": "x", "evalName": "e", "itemId": "plain", "tags": {}}
    kit.run(records=[{**trial("a,b", 0, True), **NAMES, "itemId": "odd", "tags": tags}, plain])
    kit.ingest()
    assert kit.get("/outcomes", **parameters)["page"]["total"] == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("PRÜFUNG жö", 1),
        ("a.b (C+\\d) [x]^$|*? 50%_", 1),
        ("a.b", 1),
        ("aab", 0),
        ("ß", 1),
        ("\n", 1),
        ("prüfungen", 0),
    ],
)
def test_a_search_for_runs_takes_all_signs_as_they_are_but_for_case(
    kit: Any, trial: Any, text: str, count: int
) -> None:
    kit.run(records=[{**trial("s", 0, True), "evalName": "Prüfung ЖÖ A.B (c+\\d) [X]^$|*? 50%_ß\n"}])
    kit.ingest()
    assert kit.get("/runs", q=text)["page"]["total"] == count


def test_one_outcome(kit: Any, run_id: str) -> None:
    failed = kit.get("/outcomes", verdict="fail")["items"][0]
    outcome = kit.get(f"/outcomes/{failed['id']}")
    assert (outcome["prompt"], outcome["output"], outcome["executor"]) == (
        "Write app.json",
        "I created app.json.",
        "mock",
    )
    assert [item["name"] for item in outcome["graders"]] == ["output-contains port", "file-exists"]
    assert outcome["graders"][0]["evidence"] == "output-contains port failed"
    assert outcome["toolBreakdown"] == {"bash": 1, "write": 1}
    assert [(item["trialIndex"], item["verdict"]) for item in outcome["trials"]] == [
        (0, "pass"),
        (1, "fail"),
        (2, "pass"),
    ]
    neighbours = {item["id"] for item in kit.get("/outcomes")["items"]}
    assert {outcome["previousId"], outcome["nextId"]} <= neighbours
    assert outcome["skillsLoaded"] == ["config-writer"]


def test_graders_keep_their_nesting(kit: Any, trial: Any) -> None:
    inner = {"name": "inner", "kind": "llm", "passed": False, "score": 0, "evidence": "e", "status": "error"}
    outer = {"name": "outer", "kind": "code", "passed": False, "score": 0, "evidence": "e", "details": [inner, inner]}
    grade = {"name": "g", "kind": "code", "passed": False, "score": 0, "evidence": "e", "details": [outer, outer]}
    kit.run(records=[trial("s", 0, gradeResult=grade)])
    kit.ingest()
    (item,) = kit.get("/outcomes")["items"]
    assert item["graderError"] is True
    tree = kit.get(f"/outcomes/{item['id']}")["graders"]
    assert [[inner["name"] for inner in outer["details"]] for outer in tree] == [["inner", "inner"]] * 2


def test_a_trajectory_is_paged_and_filtered(kit: Any, run_id: str) -> None:
    outcome_id = kit.get("/outcomes", verdict="fail")["items"][0]["id"]
    page = kit.get(f"/outcomes/{outcome_id}/trajectory")
    events = page["trajectory"]["events"]
    assert [(item["index"], item["offsetMs"], item["type"]) for item in events[:3]] == [
        (0, 0, "user_message"),
        (1, 1204, "tool_call"),
        (2, 1300, "tool_call"),
    ]
    assert "diff" not in page["trajectory"]
    calls = kit.get(f"/outcomes/{outcome_id}/trajectory", type="tool_call,tool_result", limit=3)
    assert [item["index"] for item in calls["trajectory"]["events"]] == [1, 2, 3]
    rest = kit.get(
        f"/outcomes/{outcome_id}/trajectory", type="tool_call,tool_result", limit=3, cursor=calls["page"]["nextCursor"]
    )
    assert [item["index"] for item in rest["trajectory"]["events"]] == [4]
    assert kit.get(f"/outcomes/{outcome_id}/trajectory", turn=3)["page"]["total"] == 0


def test_an_outcome_without_a_trajectory_has_none_to_show(kit: Any, run_id: str) -> None:
    outcome_id = kit.get("/outcomes", verdict="error")["items"][0]["id"]
    assert error(kit.client().get(f"/api/outcomes/{outcome_id}/trajectory")) == (404, "not_found")
    assert kit.get(f"/outcomes/{outcome_id}/diff")["reason"] == "the trial has no trajectory"


def test_a_diff_names_its_files(kit: Any, run_id: str) -> None:
    outcome_id = kit.get("/outcomes", verdict="fail")["items"][0]["id"]
    diff = kit.get(f"/outcomes/{outcome_id}/diff")
    assert diff["files"] == [
        {"path": "app.json", "oldPath": None, "change": "added", "additions": 2, "deletions": 0, "binary": False}
    ]
    missing = kit.get(f"/outcomes/{outcome_id}/diff", turn=1)
    assert (missing["available"], missing["reason"], missing["text"]) == (False, "no diff of turn 1 was recorded", "")


def test_a_diff_in_a_side_file_is_found(kit: Any, trial: Any) -> None:
    record = trial("s", 0)
    record["trajectory"] = {**record["trajectory"], "diff": None, "diffPath": "e/s/m/0/workspace.diff"}
    other = trial("t", 0)
    other["trajectory"] = {**other["trajectory"], "diff": None, "diffPath": "../../outside.diff"}
    kit.run(records=[record, other])
    kit.write("runs/one/e/s/m/0/workspace.diff", text="diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    kit.write("outside.diff", text="secret")
    kit.ingest()
    ids = {item["stimulus"]: item["id"] for item in kit.get("/outcomes")["items"]}
    assert kit.get(f"/outcomes/{ids['s']}/diff")["files"][0]["path"] == "x"
    assert kit.get(f"/outcomes/{ids['t']}/diff")["available"] is False


def test_the_raw_record_is_as_it_was(kit: Any, run_id: str, trials: Any) -> None:
    outcome_id = kit.get("/outcomes", verdict="fail")["items"][0]["id"]
    answer = kit.client().get(f"/api/outcomes/{outcome_id}/raw")
    assert answer.content == json.dumps(trials[1]).encode()


def test_tool_calls_have_their_results(kit: Any, run_id: str) -> None:
    outcome_id = kit.get("/outcomes", verdict="fail")["items"][0]["id"]
    first, second = kit.get(f"/outcomes/{outcome_id}/tools")["items"]
    assert (first["name"], first["success"], first["offsetMs"], first["durationMs"]) == ("write", True, 1204, 56)
    assert (second["name"], second["success"], second["result"]) == ("bash", False, "no such file")
    tools = kit.get(f"/runs/{run_id}/tools")["tools"]
    assert [(item["name"], item["callCount"], item["successRate"]) for item in tools] == [
        ("bash", 4, 0),
        ("write", 4, 1),
    ]


def test_the_matrix_marks_what_is_odd(kit: Any, run_id: str) -> None:
    matrix = kit.get(f"/runs/{run_id}/matrix")
    cells = {cell["row"]: cell for cell in matrix["cells"]}
    assert cells["config-eval::writes-json"]["value"] == pytest.approx(2 / 3)
    assert cells["config-eval::writes-json"]["flags"] == ["flaky"]
    assert cells["config-eval::keeps-comments"]["flags"] == ["errors", "partial"]
    assert [column["key"] for column in matrix["columns"]] == ["gpt-x"]
    graders = kit.get(f"/runs/{run_id}/matrix", rows="grader", metric="score")
    assert {cell["row"]: cell["value"] for cell in graders["cells"]}["file-exists"] == 1
    tags = kit.get(f"/runs/{run_id}/matrix", rows="tag:area", columns="eval")
    assert [(cell["row"], cell["outcomeCount"]) for cell in tags["cells"]] == [("config", 5)]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("pass_rate", 0.75),
        ("error_rate", 0.2),
        ("skipped_rate", 0),
        ("flaky_rate", 1),
        ("score", 0.875),
        ("pass_at_k", 1),
        ("pass_to_the_k", (8 / 27 + 1) / 2),
        ("duration_ms", 9100),
        ("duration_p50_ms", 9300),
        ("duration_p95_ms", 10100),
        ("wall_time_ms", 7900),
        ("total_duration_ms", 45500),
        ("turns", 4),
        ("tool_calls", 2),
        ("tool_error_rate", 0.5),
        ("agent_errors", 0),
        ("skill_activations", None),
        ("model_calls", 2),
        ("input_tokens", 2500),
        ("output_tokens", 347),
        ("total_tokens", 2847),
        ("cache_read_tokens", None),
        ("total_tokens_sum", 4 * 2847),
        ("cost_usd", None),
        ("cost_aiu", None),
        ("outcome_count", 5),
    ],
)
def test_metrics(kit: Any, run_id: str, metric: str, value: float | None) -> None:
    (cell,) = kit.get(f"/runs/{run_id}/matrix", metric=metric, rows="eval")["cells"]
    assert cell["value"] == (None if value is None else pytest.approx(value))
    (series,) = kit.get("/trends", metric=metric)["series"]
    assert series["points"][0]["value"] == (None if value is None else pytest.approx(value))


def test_a_trend_is_what_the_matrix_of_each_run_says(kit: Any, trial: Any, summary: Any) -> None:
    for run, passes in enumerate(("101", "011")):
        records = [
            trial(stimulus, index, passed == "1", model=model, durationMs=7 * index + place)
            for place, (stimulus, model) in enumerate((("a", "m1"), ("a", "m2"), ("b", "m1")))
            for index, passed in enumerate(passes[place:])
        ]
        for record in records:
            index = record["trialIndex"]
            cost = {"unit": ("usd", "aiu")[index % 2], "amount": 0.1 + index / 7}
            record["trajectory"]["metrics"]["tokenUsage"]["cost"] = cost
        records += [{**trial("b", 9, None, model="m2"), "status": "skipped", "trajectory": None}, summary()]
        kit.run(f"runs/{run}", [{**record, "runId": f"r{run}"} for record in records])
    kit.ingest()
    run_ids = [item["id"] for item in kit.get("/runs")["items"]]
    assert len(run_ids) == 2
    for metric in (item["id"] for item in kit.get("/metrics")["metrics"]):
        points = {
            (series["key"], point["runId"]): (point["value"], point["outcomeCount"])
            for series in kit.get("/trends", metric=metric, groupBy="model")["series"]
            for point in series["points"]
        }
        assert points == {
            (cell["column"], run_id): (cell["value"], cell["outcomeCount"])
            for run_id in run_ids
            for cell in kit.get(f"/runs/{run_id}/matrix", metric=metric, rows="eval")["cells"]
        }, metric


def test_every_metric_is_listed(kit: Any, run_id: str) -> None:
    listed = [item["id"] for item in kit.get("/metrics")["metrics"]]
    assert len(listed) == len(set(listed)) == 27


def test_the_ranking_puts_the_best_model_first(kit: Any, trial: Any) -> None:
    records = [
        trial("s", 0, True, model="slow"),
        trial("s", 1, True, model="quick", durationMs=1),
        trial("s", 0, False, model="bad"),
    ]
    kit.run(records=[*records, trial("s", 0, None, model="ungraded")])
    kit.ingest()
    run_id = kit.get("/runs")["items"][0]["id"]
    models = kit.get(f"/runs/{run_id}/ranking")["models"]
    assert [(item["rank"], item["model"], item["passRate"]) for item in models] == [
        (1, "quick", 1),
        (2, "slow", 1),
        (3, "bad", 0),
        (4, "ungraded", None),
    ]


def test_graders_that_fail_most_come_first(kit: Any, run_id: str) -> None:
    graders = kit.get(f"/runs/{run_id}/graders")["graders"]
    assert [(item["name"], item["failCount"], item["passRate"]) for item in graders] == [
        ("output-contains port", 1, 0.75),
        ("file-exists", 0, 1),
    ]
    assert graders[0]["sampleFailureEvidence"] == ["output-contains port failed"]
    (first, _) = kit.get("/graders")["graders"]
    assert (first["runCount"], first["lastFailedRunId"]) == (1, run_id)


def test_means_of_scores_are_exact_in_every_database(kit: Any, trial: Any) -> None:
    """Sums that databases make depend on their order in the last digits, and clients compare answers."""
    scores = [0.1, 0.7, 1 / 3, 0.2, 0.9, 1 / 7, 0.3, 0.6, 0.1, 0.8]
    records = []
    for index, score in enumerate(scores):
        record = trial("s", index, True)
        record["gradeResult"]["score"] = record["gradeResult"]["details"][0]["score"] = score
        records.append(record)
    kit.run(records=records)
    kit.ingest()
    mean = math.fsum(scores) / len(scores)
    (series,) = kit.get("/trends", metric="score")["series"]
    assert [point["value"] for point in series["points"]] == [mean]
    graders = {item["name"]: item["meanScore"] for item in kit.get("/graders")["graders"]}
    assert graders["output-contains port"] == mean


def test_a_distribution_counts_every_value(kit: Any, run_id: str) -> None:
    found = kit.get(f"/runs/{run_id}/distribution", bins=4)
    (series,) = found["series"]
    assert (sum(series["counts"]), series["min"], series["max"], series["p50"]) == (5, 8300, 10300, 9300)
    assert (found["bins"][0]["from"], found["bins"][-1]["to"], len(found["bins"])) == (8300, 10300, 4)


def test_two_runs_compare_stimulus_by_stimulus(kit: Any, run_id: str, trials: Any, trial: Any, summary: Any) -> None:
    better = [{**item, "runId": "run-2"} for item in trials[:4]]
    better[1] = trial("writes-json", 1, True, runId="run-2")
    kit.run("runs/two", [*better, trial("new", 0, runId="run-2"), summary(runId="run-2")])
    kit.ingest()
    other = next(item["id"] for item in kit.get("/runs")["items"] if item["id"] != run_id)
    found = kit.get("/compare", runs=f"{run_id},{other}")
    assert {row["stimulus"]: row["change"] for row in found["rows"]} == {
        "writes-json": "fixed",
        "keeps-comments": "fixed",
    }
    assert found["counts"] == {"fixed": 2, "broken": 0, "improved": 0, "worse": 0, "same": 0, "unmatched": 1}
    assert found["unmatched"] == [{"key": "config-eval::new", "runIds": [other]}]
    assert found["totals"][1]["delta"] == pytest.approx(0.25)
    back = kit.get("/compare", runs=f"{other},{run_id}")
    assert {row["change"] for row in back["rows"]} == {"broken"}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/runs?limit=1001", (400, "invalid_params")),
        ("/runs?limit=0", (400, "invalid_params")),
        ("/runs?x=1", (400, "invalid_params")),
        ("/runs?sort=size", (400, "invalid_params")),
        ("/runs?since=soon", (400, "invalid_params")),
        ("/runs?verdict=good", (400, "invalid_params")),
        ("/runs?cursor=abc", (400, "invalid_cursor")),
        ("/runs/" + "0" * 32, (404, "not_found")),
        ("/runs/x", (404, "not_found")),
        ("/outcomes/" + "0" * 32, (404, "not_found")),
        ("/compare", (400, "invalid_params")),
        ("/compare?runs=a", (400, "invalid_params")),
        ("/compare?runs=a,b,c,d,e,f,g", (400, "invalid_params")),
        ("/compare?runs=" + "0" * 32 + "," + "1" * 32, (404, "not_found")),
        ("/trends?metric=nonsense", (400, "invalid_params")),
        ("/nothing", (404, "not_found")),
        ("", (404, "not_found")),
        ("/comparisons/" + "0" * 32, (404, "not_found")),
        ("/metrics?x=1", (400, "invalid_params")),
    ],
)
def test_what_cannot_be_answered(kit: Any, path: str, answer: tuple[int, str]) -> None:
    assert error(kit.client().get(f"/api{path}")) == answer


def test_a_message_names_the_parameter(kit: Any) -> None:
    message = kit.client().get("/api/runs?limt=5").json()["error"]["message"]
    assert message == "limt: unknown parameter"


def test_health_counts_runs_and_changes(kit: Any, run_id: str) -> None:
    health = kit.get("/health")
    assert (health["runCount"], health["mode"], health["schemaVersion"]) == (1, "store", "0001")
    before = health["dataVersion"]
    kit.run("runs/two", [{"trajectory": {"output": ""}}])
    kit.ingest()
    assert kit.get("/health")["dataVersion"] == before + 1


@pytest.mark.parametrize(
    ("path", "name", "values"),
    [
        ("/runs", "limit", ("1", "2")),
        ("/runs", "sort", ("name", "-startedAt")),
        ("/outcomes", "minScore", ("0", "1")),
        ("/outcomes", "graderPassed", ("true", "false")),
        ("/trends", "metric", ("score", "pass_rate")),
        ("/trends", "since", ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")),
    ],
)
def test_a_parameter_with_one_value_is_given_once(kit: Any, path: str, name: str, values: tuple[str, str]) -> None:
    answer = kit.client().get(f"/api{path}", params={name: list(values)})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        {"code": "invalid_params", "message": f"{name}: given more than once"},
    )


@pytest.mark.parametrize("name", ["model", "verdict", "stimulus", "tag", "trialIndex", "q"])
def test_filters_may_be_repeated(kit: Any, name: str) -> None:
    values = {"verdict": ["pass", "fail"], "tag": ["a:b", "c:d"], "trialIndex": ["0", "1"]}.get(name, ["a", "b"])
    assert kit.client().get("/api/outcomes", params={name: values}).status_code == 200
