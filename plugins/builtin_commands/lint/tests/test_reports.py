"""What is printed and written: text, JSON, SARIF, annotations, summaries."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from vally.testing import CliResult, ProjectBuilder

SAMPLE = """\
Found 2 skill(s): changelog-writer, log-reader

✔ changelog-writer
  ✔ spec-compliance (4/4 checks passed)
  ✔ valid-refs (2 references, 0 broken)
  ℹ orphan-files (1 file not referenced)
    ℹ references/draft.md

✘ log-reader
  ✘ spec-compliance (3/4 checks passed)
    ✗ description: description is empty (skills/log-reader/SKILL.md:3)
    ⚠ unknown-frontmatter-key: unknown key 'categry' (skills/log-reader/SKILL.md:4)
  ✘ valid-refs (1 reference, 1 broken)
    ✗ broken-ref: references/format.md does not exist (skills/log-reader/SKILL.md:7)

1/2 skills passed

Eval: evals/deep.yaml
  ✘ error [missing-prompt] stimulus 'a': prompt or turns is required (line 3)
  1 error(s), 2 warning(s)

Eval: evals/hello.yaml
  ✔ no problems

Eval: evals/keys.yaml
  ⚠ warning [foreign-key] unknown key 'area' is ignored (line 2)
  1 warning(s)

2/3 eval specs passed
"""


@pytest.fixture
def sample(project: ProjectBuilder) -> ProjectBuilder:
    project.skill("changelog-writer", "[a](references/a.md) [b](references/b.md)")
    for name in ("a", "b", "draft"):
        project.file(f"skills/changelog-writer/references/{name}.md", "text")
    project.file(
        "skills/log-reader/SKILL.md",
        "---\nname: log-reader\ndescription: ''\ncategry: x\n---\n\n[f](references/format.md)\n",
    )
    project.file("evals/hello.yaml", "stimuli: [{name: a, prompt: x, graders: [{type: fine}]}]\n")
    project.file("evals/keys.yaml", "stimuli: [{name: a, prompt: x, graders: [{type: fine}]}]\narea: x\n")
    project.file("evals/deep.yaml", "stimuli:\n\n  - name: a\n    rubric: [x]\n")
    return project


@pytest.fixture
def plugins(stand_ins: Any) -> list[Any]:
    from dataclasses import replace

    return [replace(stand_ins[0], name="fine", config=None)]


ALL = ("skills", "-e", "evals/deep.yaml", "-e", "evals/hello.yaml", "-e", "evals/keys.yaml")


def test_the_text_report(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    result: CliResult = cli(*ALL, plugins=plugins)
    lines = result.stdout.splitlines()
    # What else is wrong with that spec is not this test's business.
    shown = [line for line in lines if "no-graders" not in line and "rubric-" not in line]
    assert shown == SAMPLE.splitlines()
    assert (result.exit_code, result.stderr) == (1, "")


def test_quiet_shows_findings_and_totals_only(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    lines = cli(*ALL, "--quiet", plugins=plugins).stdout.splitlines()
    assert "" not in lines
    assert not [line for line in lines if "hello" in line or line.startswith("Found") or "no problems" in line]
    assert [line for line in lines if line.endswith("passed")] == ["1/2 skills passed", "2/3 eval specs passed"]
    assert "  ✘ valid-refs (1 reference, 1 broken)" in lines


def test_verbose_shows_what_passed(sample: ProjectBuilder, cli: Any) -> None:
    lines = cli("skills/changelog-writer", "--verbose").stdout.splitlines()
    assert "    ✔ name-format: changelog-writer" in lines
    assert "    ✔ line-count: 8 lines" in lines
    assert "    ✔ references/a.md" in lines
    assert any(line.startswith("  ✔ skill-size (about ") for line in lines)


def test_the_json_report(sample: ProjectBuilder, lint_json: Any, plugins: Any) -> None:
    report = lint_json(*ALL, "--strict", plugins=plugins)
    assert {key: report[key] for key in ("type", "version", "passed", "strict", "project", "findings")} == {
        "type": "lint-report",
        "version": 1,
        "passed": False,
        "strict": True,
        "project": [],
        "findings": [],
    }
    assert [(skill["name"], skill["path"], skill["passed"]) for skill in report["skills"]] == [
        ("changelog-writer", "skills/changelog-writer", True),
        ("log-reader", "skills/log-reader", False),
    ]
    assert [check["id"] for check in report["skills"][0]["checks"]] == [
        "spec-compliance", "valid-refs", "orphan-files", "skill-size",
    ]  # fmt: skip
    assert report["evals"][2] == {
        "path": "evals/keys.yaml",
        "passed": False,
        "findings": [
            {
                "code": "foreign-key",
                "level": "error",
                "message": "unknown key 'area' is ignored",
                "file": "evals/keys.yaml",
                "line": 2,
                "column": 1,
                "pointer": "/area",
                "hint": None,
            }
        ],
    }
    everything = [*report["evals"], *(check for skill in report["skills"] for check in skill["checks"])]
    levels = [found["level"] for item in everything for found in item["findings"]]
    assert report["totals"] == {
        "skills": 2,
        "skillsPassed": 1,
        "evals": 3,
        "evalsPassed": 1,
        "errors": levels.count("error"),
        "warnings": 0,
        "infos": 1,
    }


def test_machine_output_has_stdout_for_itself(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    result: CliResult = cli(*ALL, "--output", "json", plugins=plugins)
    json.loads(result.stdout)
    assert "1/2 skills passed" in result.stderr
    assert "\x1b" not in result.stdout


def test_a_file_leaves_stdout_to_the_text(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    result: CliResult = cli(*ALL, "--output", "sarif", "--output-file", "out.sarif", plugins=plugins)
    assert "1/2 skills passed" in result.stdout
    assert json.loads((sample.root / "out.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_a_file_that_cannot_be_written_is_an_error(sample: ProjectBuilder, cli: Any) -> None:
    result: CliResult = cli("skills", "--output", "json", "--output-file", "no/where.json")
    assert result.exit_code == 1
    assert "error: cannot write no/where.json: no such file or directory\n" in result.stderr


def sarif(cli: Any, *args: str, **options: Any) -> dict[str, Any]:
    document = json.loads(cli(*args, "--output", "sarif", **options).stdout)
    assert (document["version"], len(document["runs"])) == ("2.1.0", 1)
    return dict(document["runs"][0])


def test_the_sarif_report(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    run = sarif(cli, *ALL, plugins=plugins)
    driver = run["tool"]["driver"]
    assert driver["name"] == "vally"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["version"])
    codes = [rule["id"] for rule in driver["rules"]]
    assert codes == sorted(set(codes)) == sorted({result["ruleId"] for result in run["results"]})
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert codes[result["ruleIndex"]] == result["ruleId"]
    (found,) = (result for result in run["results"] if result["ruleId"] == "unknown-frontmatter-key")
    file = "skills/log-reader/SKILL.md"
    digest = hashlib.sha256(f"unknown-frontmatter-key\n{file}\nunknown key 'categry'".encode()).hexdigest()
    assert found == {
        "ruleId": "unknown-frontmatter-key",
        "ruleIndex": codes.index("unknown-frontmatter-key"),
        "level": "warning",
        "message": {"text": "unknown key 'categry'"},
        "partialFingerprints": {"vally/v1": digest},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": file, "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 4, "startColumn": 1},
                }
            }
        ],
    }


def test_sarif_has_the_level_after_strict_and_line_1_when_unknown(sample: ProjectBuilder, cli: Any) -> None:
    levels = {result["ruleId"]: result for result in sarif(cli, "skills", "--strict")["results"]}
    assert levels["unknown-frontmatter-key"]["level"] == "error"
    orphan = levels["orphan-files"]
    assert orphan["level"] == "note"
    assert orphan["locations"][0]["physicalLocation"]["region"] == {"startLine": 1, "startColumn": 1}


def test_fingerprints_do_not_change_with_numbers(sample: ProjectBuilder, cli: Any) -> None:
    def prints(lines: int) -> list[str]:
        sample.file("skills/long/SKILL.md", "---\nname: long\ndescription: d\n---\n" + "x\n" * lines)
        results = sarif(cli, "skills/long")["results"]
        return [result["partialFingerprints"]["vally/v1"] for result in results]

    assert prints(600) == prints(601) != []


def test_paths_are_percent_encoded_and_relative_to_the_project(project: ProjectBuilder, cli: Any) -> None:
    project.project()
    project.skill("ok", "x")
    project.file("sub dir/ü/skill/SKILL.md", "x")
    run = sarif(cli, cwd=project.root / "sub dir")
    locations = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]]
    assert {location["uri"] for location in locations} == {"sub%20dir/%C3%BC/skill/SKILL.md"}


def test_files_outside_the_project_have_absolute_addresses(
    project: ProjectBuilder, cli: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "SKILL.md").write_text("x", encoding="utf-8")
    run = sarif(cli, str(elsewhere))
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": (elsewhere / "SKILL.md").as_uri()}


ACTIONS = {"GITHUB_ACTIONS": "true"}


def test_annotations(sample: ProjectBuilder, cli: Any, plugins: Any) -> None:
    env = {**ACTIONS, "GITHUB_WORKSPACE": str(sample.root)}
    lines = cli(*ALL, env=env, plugins=plugins).stderr.splitlines()
    assert (
        "::error file=skills/log-reader/SKILL.md,line=7,title=broken-ref::references/format.md does not exist" in lines
    )
    assert "::warning file=evals/keys.yaml,line=2,title=foreign-key::unknown key 'area' is ignored" in lines
    orphan = "skills/changelog-writer/references/draft.md"
    assert f"::notice file={orphan},title=orphan-files::references/draft.md is not referenced" in lines


def test_at_most_ten_annotations_per_level(project: ProjectBuilder, cli: Any) -> None:
    project.skill("reader", "\n".join(f"[x](no{number}.md)" for number in range(20)))
    lines = cli("skills", env=ACTIONS).stderr.splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10


def test_annotations_are_escaped(project: ProjectBuilder, cli: Any) -> None:
    project.file("skills/a,b:c%/SKILL.md", "---\nname: 'x\\n::error::y'\ndescription: d\n---\n")
    lines = cli("skills", env=ACTIONS).stderr.splitlines()
    assert all(line.startswith(("::error file=", "::notice file=", "::warning file=")) for line in lines)
    assert any("a%2Cb%3Ac%25/SKILL.md" in line for line in lines)


def test_the_report_cannot_command_a_workflow(project: ProjectBuilder, cli: Any) -> None:
    project.file("skills/a/SKILL.md", '---\nname: "::error::x \\e[31m"\ndescription: d\n---\n')
    lines = cli("skills", env=ACTIONS).stdout.splitlines()
    token = re.fullmatch(r"::stop-commands::([0-9a-f]{16,})", lines[0])
    assert token is not None
    assert lines[-1] == f"::{token[1]}::"
    assert "\x1b" not in "".join(lines)
    assert "\x1b" not in cli("skills").stdout


def test_the_step_summary_gets_tables(sample: ProjectBuilder, cli: Any, plugins: Any, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    cli(*ALL, env={**ACTIONS, "GITHUB_STEP_SUMMARY": str(summary)}, plugins=plugins)
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## vally lint: failed\n")
    assert "| skill | log-reader | ✘ fail | 2 | 1 |" in text
    assert "| eval | evals/hello.yaml | ✔ pass | 0 | 0 |" in text


def test_the_step_summary_of_nothing_says_so(project: ProjectBuilder, cli: Any, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.touch()
    (project.root / "empty").mkdir()
    assert cli("empty", "--allow-empty", env={**ACTIONS, "GITHUB_STEP_SUMMARY": str(summary)}).exit_code == 0
    assert summary.read_text(encoding="utf-8").startswith("## vally lint: nothing to check\n")


def test_a_summary_that_cannot_be_written_is_a_warning(sample: ProjectBuilder, cli: Any, tmp_path: Path) -> None:
    result: CliResult = cli("skills", env={**ACTIONS, "GITHUB_STEP_SUMMARY": str(tmp_path)})
    assert "warning: step summary not written: " in result.stderr


def test_without_actions_there_are_no_annotations(sample: ProjectBuilder, cli: Any) -> None:
    result: CliResult = cli("skills")
    assert "::" not in result.stdout + result.stderr


def test_colour_only_when_asked_for(sample: ProjectBuilder, cli: Any) -> None:
    assert "\x1b[32m✔" in cli("skills", "--color", "always").stdout
    assert "\x1b" not in cli("skills", "--color", "always", "--output", "json").stdout
    assert "\x1b" not in cli("skills", env={"NO_COLOR": "1"}).stdout


def test_places_in_other_files_are_told(project: ProjectBuilder, cli: Any, stand_ins: Any) -> None:
    project.file("data/rows.csv", "q\nx\n  \n")
    row = "{prompt: '${row.q}', graders: [{type: opinion}]}"
    project.file("eval.yaml", f"stimuli_from: {{file: data/rows.csv, template: {row}}}\n")
    text = cli("-e", "eval.yaml", plugins=stand_ins).stdout
    assert "a text that is not blank (line 1, data/rows.csv:3)\n" in text
    found = json.loads(cli("-e", "eval.yaml", "--output", "sarif", plugins=stand_ins).stdout)["runs"][0]["results"]
    wrong = next(item for item in found if item["level"] == "error")
    (place,) = wrong["relatedLocations"]
    assert place["message"]["text"] == "row 2"
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "data/rows.csv", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 3, "startColumn": 1},
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_report_goes_into_a_pipe_that_is_named(project: ProjectBuilder, cli: Any) -> None:
    project.skill("a")
    pipe = project.root / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert cli("skills", "--output", "json", "--output-file", "pipe").exit_code == 0
        assert json.loads(os.read(reader, 60_000))["type"] == "lint-report"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
