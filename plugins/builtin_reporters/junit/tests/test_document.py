"""The file as a whole: its text, its order, its counts, and texts that XML cannot hold as they are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import junitparser
import pytest

from vally import ErrorInfo, GraderResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_junit.reporter import JunitReporter

Report = Callable[..., Any]
Grader = Callable[..., GraderResult]
HOSTILE = "<script>\"&'> \x1b[31m \x00 \ufffe \ud800 \u202e 😀 ]]> ::error::x\r\n\tend"
CLEAN = "<script>\"&'> \ufffd[31m \ufffd \ufffd \ufffd \u202e 😀 ]]> ::error::x\r\n\tend"

GOLDEN = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="vally" tests="5" failures="1" errors="1" skipped="1" time="33.396">
  <testsuite name="config-eval" tests="4" failures="1" errors="1" skipped="1" time="25.047" timestamp="2026-01-02T03:04:05.678Z">
    <properties>
      <property name="threshold" value="0.9"/>
      <property name="model" value="gpt-x"/>
      <property name="executor" value="scripted"/>
      <property name="variant" value="main"/>
      <property name="evalFile" value="evals/config/eval.yaml"/>
      <property name="runId" value="scripted"/>
      <property name="passed" value="false"/>
      <property name="overallScore" value="0.75"/>
      <property name="file-exists app.json" value="1"/>
      <property name="output-contains port" value="0.5"/>
    </properties>
    <testcase name="writes-json (trial 1)" classname="config-eval" time="8.349" file="evals/config/eval.yaml" line="3">
      <properties>
        <property name="file-exists app.json" value="1"/>
        <property name="output-contains port" value="1"/>
      </properties>
    </testcase>
    <testcase name="writes-json (trial 2)" classname="config-eval" time="8.349" file="evals/config/eval.yaml" line="3">
      <properties>
        <property name="file-exists app.json" value="1"/>
        <property name="output-contains port" value="0"/>
      </properties>
      <failure type="grader-failure" message="1 of 2 graders failed (score 0.50)">output-contains port: 'port' NOT found in output</failure>
    </testcase>
    <testcase name="keeps-comments (trial 1)" classname="config-eval" time="8.349" file="evals/config/eval.yaml" line="4">
      <error type="provider-error" message="the provider is down"/>
    </testcase>
    <testcase name="keeps-comments (trial 2)" classname="config-eval" time="0.000" file="evals/config/eval.yaml" line="4">
      <skipped message="no browser"/>
    </testcase>
    <system-out>writes-json: pass@2 1.00, pass^2 0.25, pass rate 50.0% (95% CI 9.5% to 90.5%), flaky 50%
pass rate 50.0% (95% CI 9.5% to 90.5% over 2 trials)</system-out>
  </testsuite>
  <testsuite name="hello-eval" tests="1" failures="0" errors="0" skipped="0" time="8.349" timestamp="2026-01-02T03:04:05.678Z">
    <properties>
      <property name="threshold" value="0.9"/>
      <property name="model" value="gpt-x"/>
      <property name="executor" value="scripted"/>
      <property name="variant" value="main"/>
      <property name="evalFile" value="evals/hello/eval.yaml"/>
      <property name="runId" value="scripted"/>
      <property name="passed" value="true"/>
      <property name="overallScore" value="1"/>
      <property name="file-exists app.json" value="1"/>
    </properties>
    <testcase name="writes-hello" classname="hello-eval" time="8.349" file="evals/hello/eval.yaml" line="3">
      <properties>
        <property name="file-exists app.json" value="1"/>
      </properties>
    </testcase>
  </testsuite>
</testsuites>
"""  # noqa: E501  # lines of the file


def test_a_whole_report(report: Report, grader: Grader) -> None:
    exists = grader("file-exists app.json")
    missing = grader("output-contains port", False, "'port' NOT found in output")
    config = {"eval_name": "config-eval", "eval_file_path": "evals/config/eval.yaml", "total_trials": 2}
    hello = {"eval_name": "hello-eval", "eval_file_path": "evals/hello/eval.yaml"}
    facts = {"model": "gpt-x", "duration_ms": 8349}
    info = ErrorInfo(message="the provider is down", code="provider-error")
    results = [
        trial_result("writes-json", exists, missing, trial_index=1, **config, **facts),
        trial_result("writes-json", exists, grader("output-contains port"), trial_index=0, **config, **facts),
        trial_result("keeps-comments", status="error", error=info.message, error_info=info, **config, **facts),
        trial_result(
            "keeps-comments",
            status="skipped",
            skip_reason="no browser",
            trial_index=1,
            **config,
            **{**facts, "duration_ms": 0},
        ),
        trial_result("writes-hello", exists, **hello, **facts),
    ]
    assert report(*results, threshold=0.9).text == GOLDEN


def test_statistics_need_several_trials(report: Report, grader: Grader) -> None:
    assert "system-out" not in report(trial_result("s", grader("g"))).text


def test_statistics_are_text(report: Report, grader: Grader) -> None:
    trials = [trial_result(HOSTILE, grader("g"), trial_index=index, total_trials=2) for index in (0, 1)]
    (text,) = [item.text for item in report(*trials).suites[0].iter("system-out")]
    name = " ".join(CLEAN.replace("\t", " ").split())
    assert text.splitlines()[0] == f"{name}: pass@2 1.00, pass^2 1.00, pass rate 100.0% (95% CI 34.2% to 100.0%)"


def test_variants_have_files_of_their_own(tmp_path: Path, grader: Grader) -> None:
    results = [trial_result("s", grader("g", variant == "x"), variant=variant) for variant in ("x", "y")]
    events = list(ScriptedRun(tmp_path, results).events())
    run_dir = tmp_path / "run"
    lines = (run_dir / "results.jsonl").read_bytes().splitlines(keepends=True)
    (run_dir / "results.jsonl").unlink()
    places = {variant: run_dir / variant for variant in ("x", "y", "unselected")}
    for directory, line in zip(places.values(), [*lines[:2], b""], strict=True):
        directory.mkdir()
        (directory / "results.jsonl").write_bytes(line)
    reporter = JunitReporter()
    reporter.on_run_start(replace(events[0][1], variant_dirs=places))
    named = reporter.on_run_complete(events[-1][1])
    assert named == {f"JUnit {variant}": run_dir / variant / "eval-results.junit.xml" for variant in ("x", "y")}
    found = {label: ElementTree.parse(path).getroot().attrib["failures"] for label, path in named.items()}
    assert found == {"JUnit x": "0", "JUnit y": "1"}


def test_cases_are_in_the_order_of_the_plan(report: Report, grader: Grader) -> None:
    trials = [("a", 2), ("b", 1), ("a", 0), ("b", 0), ("a", 1), ("b", 2)]
    results = [trial_result(name, grader("g"), trial_index=index, total_trials=3) for name, index in trials]
    names = [case.attrib["name"] for case in report(*results).cases]
    assert names == [f"{name} (trial {number})" for name in "ab" for number in (1, 2, 3)]


def test_several_models(report: Report, grader: Grader) -> None:
    made = report(*(trial_result("s", grader("g"), model=model) for model in ("gpt-x", "gpt-y")))
    assert [suite.attrib["name"] for suite in made.suites] == ["scripted [gpt-x]", "scripted [gpt-y]"]
    assert [case.attrib["classname"] for case in made.cases] == ["scripted [gpt-x]", "scripted [gpt-y]"]
    assert [made.suite_properties(index)["model"] for index in (0, 1)] == ["gpt-x", "gpt-y"]


def test_counts_are_exact_sums(report: Report, grader: Grader) -> None:
    kinds = [
        ([grader("g")], {}),
        ([grader("g", False)], {}),
        ([grader("g", None)], {}),
        ([], {"status": "error", "error": "down"}),
        ([], {"status": "skipped", "skip_reason": "fail-fast"}),
        ([], {}),
    ]
    results = [
        trial_result(f"s{number}", *graders, eval_file_path=f"{path}.yaml", duration_ms=10 * number + 1, **fields)
        for path in "ab"
        for number, (graders, fields) in enumerate(kinds)
    ]
    made = report(*results)
    for suite in made.suites:
        assert [suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")] == ["6", "1", "2", "1"]
        assert suite.attrib["time"] == "0.156"
    root = made.root.attrib
    assert [root[key] for key in ("tests", "failures", "errors", "skipped")] == ["12", "2", "4", "2"]
    assert root["time"] == "0.312"


def test_a_run_of_nothing(report: Report) -> None:
    assert report().text == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites name="vally" tests="0" failures="0" errors="0" skipped="0" time="0.000">\n'
        "</testsuites>\n"
    )


@pytest.fixture
def hostile(report: Report, grader: Grader) -> Any:
    names = {"eval_name": HOSTILE, "eval_file_path": HOSTILE, "model": HOSTILE}
    nested = grader(HOSTILE, False, HOSTILE, details=[grader(HOSTILE, None, HOSTILE)])
    return report(
        trial_result(HOSTILE, nested, grader("b"), **names),
        trial_result("e", status="error", error=HOSTILE, error_info=ErrorInfo(message="", code=HOSTILE), **names),
        trial_result("s", status="skipped", skip_reason=HOSTILE, **names),
    )


def test_texts_are_escaped(hostile: Any) -> None:
    for attribute in re.findall(r'"([^"]*)"', hostile.text):
        assert ">" not in attribute
        assert "<" not in attribute
        assert not re.search("&(?!(?:amp|lt|gt|quot|#10|#13|#09|#9);)", attribute)
    assert not re.search("[\x00-\x08\x0b-\x1f\ufffe\ud800]", hostile.text)
    assert hostile.text.count("<script>") == 0


def test_texts_survive_parsing(hostile: Any) -> None:
    failed, errored, skipped = hostile.cases
    assert failed.attrib["name"] == failed.attrib["classname"] == failed.attrib["file"] == CLEAN
    assert errored.find("error").attrib == {"type": CLEAN, "message": CLEAN}
    assert skipped.find("skipped").attrib == {"message": CLEAN}
    line = CLEAN.replace("\r\n\t", " ")
    assert failed.find("failure").text == f"{line}: {line}\n  {line}: {line}"


def test_another_reader_of_such_files_understands_it(hostile: Any, tmp_path: Path) -> None:
    read = junitparser.JUnitXml.fromfile(str(tmp_path / "run" / "eval-results.junit.xml"))
    (suite,) = read
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == (CLEAN, 3, 1, 1, 1)
    results = [type(case.result[0]) for case in suite]
    assert results == [junitparser.Failure, junitparser.Error, junitparser.Skipped]
    read.write(str(tmp_path / "again.xml"))
    again = ElementTree.parse(tmp_path / "again.xml").getroot()
    assert [case.attrib for case in again.iter("testcase")] == [case.attrib for case in hostile.cases]


def test_a_further_copy(tmp_path: Path, grader: Grader) -> None:
    copy = tmp_path / "reports" / "junit.xml"
    run = ScriptedRun(tmp_path, [trial_result("s", grader("g"))], flags={"junit": str(copy)})
    path = run.run_dir / "eval-results.junit.xml"
    assert run.play(JunitReporter()).artifacts == {"JUnit": path, "JUnit copy": copy}
    assert copy.read_bytes() == path.read_bytes()


def test_the_agents_output_is_not_included(report: Report, grader: Grader) -> None:
    result = trial_result("s", grader("g", False))
    assert result.trajectory is not None
    result.trajectory.output = "what the agent said"
    assert "what the agent said" not in report(result).text


def test_five_megabytes_of_evidence(report: Report, grader: Grader) -> None:
    made = report(trial_result("s", grader("g", False, "\x1b<evidence>\n" * 500_000)))
    assert made.cases[0].find("failure").text.count("\ufffd<evidence>") == 500_000


def test_memory_holds_no_test_cases(tmp_path: Path, grader: Grader) -> None:
    import tracemalloc

    graders = [grader("g", False, "e" * 20_000)]
    results = [trial_result("s", *graders, trial_index=index, total_trials=200) for index in range(200)]
    events = list(ScriptedRun(tmp_path, results).events())
    reporter = JunitReporter()
    reporter.on_run_start(events[0][1])
    tracemalloc.start()
    try:
        reporter.on_run_complete(events[-1][1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = (tmp_path / "run" / "eval-results.junit.xml").stat().st_size
    assert size > 4_000_000
    assert peak < size / 2
