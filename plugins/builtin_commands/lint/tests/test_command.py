"""`vally lint` as its users type it: what is found, options, exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import EvalProviderSpec, ForeignSpec
from vally.testing import CliResult, ProjectBuilder

SPEC = "stimuli: [{name: a, prompt: x, graders: [{type: fine}]}]\n"


@pytest.fixture
def fine(stand_ins: Any) -> list[Any]:
    return [replace(stand_ins[0], name="fine", config=None)]


def names(report: dict[str, Any]) -> list[str]:
    return [skill["path"] for skill in report["skills"]]


def paths(report: dict[str, Any]) -> list[str]:
    return [item["path"] for item in report["evals"]]


def test_without_arguments_the_skills_below_are_checked(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("b")
    project.file(".github/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\n")
    project.file("eval.yaml", "nonsense: true\n")
    report = lint_json()
    assert names(report) == [".github/skills/a", "skills/b"]
    assert report["evals"] == []
    assert report["passed"]


def test_what_is_no_skill_of_its_own(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("outer", "see inner/")
    for place in (
        "skills/outer/deep/inner", "node_modules/a", ".venv/a", "venv/a", "__pycache__/a", ".tox/a", ".git/a", "run/x",
    ):  # fmt: skip
        project.file(f"{place}/SKILL.md", "x")
    project.file("run/results.jsonl", "")
    project.file("agents/x.agent.md", "x")
    project.file("lower/skill.md", "x")
    (project.root / "linked").symlink_to(project.root / "skills")
    assert names(lint_json()) == ["skills/outer"]


@pytest.mark.parametrize("word", ["skills/a", "skills/a/SKILL.md", "skills/a/", "./skills/../skills/a"])
def test_a_skill_can_be_named(word: str, project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("a")
    project.skill("b")
    assert names(lint_json(word)) == ["skills/a"]


def test_a_skill_can_be_the_current_directory(project: ProjectBuilder, lint_json: Any) -> None:
    directory: Path = project.skill("a")
    report = lint_json(cwd=directory)
    assert [(skill["name"], skill["passed"]) for skill in report["skills"]] == [("a", True)]


def test_a_skill_named_twice_is_checked_once(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("a")
    assert names(lint_json("skills", "skills/a")) == ["skills/a"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("none", "error: none does not exist"),
        ("x.yaml", "error: x.yaml is neither a directory nor a SKILL.md\n  use -e x.yaml"),
    ],
)
def test_a_path_that_is_no_skill_is_an_error(word: str, message: str, project: ProjectBuilder, cli: Any) -> None:
    project.file("x.yaml", SPEC)
    result: CliResult = cli(word)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{message}\n")


def test_nothing_to_check_is_an_error_unless_allowed(project: ProjectBuilder, cli: Any) -> None:
    result: CliResult = cli()
    assert (result.exit_code, result.stderr) == (1, "error: nothing to lint under .\n")
    assert cli("--allow-empty").exit_code == 0
    assert cli("--all").stderr == f"error: nothing to lint under {project.root.as_posix()}\n"


def test_with_specs_alone_no_skill_is_checked(project: ProjectBuilder, cli: Any, lint_json: Any, fine: Any) -> None:
    project.file("SKILL.md", "broken")
    project.file("eval.yaml", SPEC)
    report = lint_json("-e", "eval.yaml", plugins=fine)
    assert report["passed"]
    assert report["skills"] == []
    assert "skill" not in cli("-e", "eval.yaml", plugins=fine).stdout
    assert not lint_json(".", "-e", "eval.yaml", plugins=fine)["passed"]


def test_specs_of_a_directory(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    for name in (
        "b/eval.yaml",
        "a/eval.yml",
        "a/x.eval.yaml",
        "a/y.eval.yml",
        "a/other.yaml",
        "venv/eval.yaml",
    ):
        project.file(f"evals/{name}", SPEC)
    assert paths(lint_json("-e", "evals", plugins=fine)) == [
        "evals/a/eval.yml", "evals/a/x.eval.yaml", "evals/a/y.eval.yml", "evals/b/eval.yaml",
    ]  # fmt: skip
    assert paths(lint_json("-e", "evals/a/*.yaml", plugins=fine)) == ["evals/a/other.yaml", "evals/a/x.eval.yaml"]
    assert paths(lint_json("-e", "evals/a/other.yaml", "-e", "evals/a/other.yaml", plugins=fine)) == [
        "evals/a/other.yaml"
    ]


def test_the_project_file_says_which_names_are_evals(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    project.project(paths={"evalFilenames": "check.yaml"})
    project.file("evals/check.yaml", SPEC)
    project.file("evals/eval.yaml", SPEC)
    assert paths(lint_json("-e", "evals", plugins=fine)) == ["evals/check.yaml"]


@pytest.mark.parametrize("word", ["none.yaml", "empty", "*.none"])
def test_a_spec_that_is_not_there_is_an_error(word: str, project: ProjectBuilder, lint_json: Any) -> None:
    (project.root / "empty").mkdir()
    report = lint_json("-e", word)
    (item,) = report["evals"]
    assert (item["path"], item["passed"]) == (word, False)
    assert [found["code"] for found in item["findings"]] == ["file-not-found"]


def test_a_broken_project_file_stops_everything(project: ProjectBuilder, cli: Any) -> None:
    project.skill("a")
    project.file(".vally.yaml", "environments: {x: {git: {type: wortree}}}\n")
    result: CliResult = cli()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: .vally.yaml:1:")
    assert cli("--no-config").exit_code == 0


def test_warnings_about_the_project_file_are_part_of_the_report(
    project: ProjectBuilder, cli: Any, lint_json: Any
) -> None:
    project.skill("a")
    project.file(".vally.yaml", "foo: 1\n")
    result: CliResult = cli()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "⚠ warning [foreign-key] unknown key 'foo' is ignored (.vally.yaml:1)\nFound 1 skill"
    )
    assert [(found["code"], found["level"]) for found in lint_json("--strict")["findings"]] == [
        ("foreign-key", "error")
    ]
    assert lint_json("--strict", "--severity", "foreign-key=off")["passed"]
    assert lint_json("--all")["findings"] == []


def test_strict_raises_warnings_and_not_infos(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("a")
    project.file("skills/a/extra.md", "x")
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\nargument-hint: x\n---\n")
    assert lint_json("--strict")["passed"]
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\ncategry: x\n---\n")
    assert lint_json()["passed"]
    assert not lint_json("--strict")["passed"]


@pytest.mark.parametrize(
    ("severities", "passed", "levels"),
    [
        (["orphan-files=warning"], True, {"orphan-files": "warning", "unknown-frontmatter-key": "warning"}),
        (["orphan-files=error"], False, {"orphan-files": "error", "unknown-frontmatter-key": "warning"}),
        (["unknown-frontmatter-key=off"], True, {"orphan-files": "info"}),
        (["spec-compliance=off"], True, {"orphan-files": "info"}),
        (["spec-compliance=error"], False, {"orphan-files": "info", "unknown-frontmatter-key": "error"}),
        (
            ["spec-compliance=error", "unknown-frontmatter-key=info"],
            True,
            {"orphan-files": "info", "unknown-frontmatter-key": "info"},
        ),
    ],
)
def test_levels_can_be_chosen(
    severities: list[str], passed: bool, levels: dict[str, str], project: ProjectBuilder, lint_json: Any
) -> None:
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\ncategry: x\n---\n")
    project.file("skills/a/extra.md", "x")
    words = [word for severity in severities for word in ("--severity", severity)]
    report = lint_json("skills", *words)
    found = [item for check in report["skills"][0]["checks"] for item in check["findings"]]
    assert {item["code"]: item["level"] for item in found} == levels
    assert report["passed"] is passed


def test_a_chosen_level_comes_before_strict(project: ProjectBuilder, lint_json: Any) -> None:
    project.file("skills/a/SKILL.md", "---\nname: a\ndescription: d\ncategry: x\n---\n")
    assert lint_json("--strict", "--severity", "unknown-frontmatter-key=info")["passed"]
    project.file("skills/a/extra.md", "x")
    assert not lint_json("--strict", "--severity", "orphan-files=warning")["passed"]


def test_levels_of_spec_codes_can_be_chosen(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    project.file("eval.yaml", f"area: x\n{SPEC}")
    assert lint_json("-e", "eval.yaml", "--strict", "--severity", "foreign-key=off", plugins=fine)["passed"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--severity", "orphan-file=error"], "no check or code named 'orphan-file'"),
        (["--severity", "orphan-files=fatal"], "'orphan-files=fatal' is not of the form check=off|info|warning|error"),
        (["--output-file", "x.json"], "--output-file needs --output json or --output sarif"),
        (["--eval-plugin", "./x.py"], "--eval-plugin needs --eval-spec"),
        (["--output", "xml"], "'xml' is not one of 'text', 'json', 'sarif'"),
        (["--param", "1=x"], "'1=x' is not of the form key=value"),
        (["--nonsense"], "no such option '--nonsense'"),
        (["--quiet", "--verbose"], "--quiet and --verbose exclude each other"),
    ],
)
def test_wrong_use_is_told_and_exits_with_2(args: list[str], message: str, project: ProjectBuilder, cli: Any) -> None:
    project.skill("a")
    result: CliResult = cli(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message.lower() in result.stderr.lower()


def test_a_misspelt_check_gets_a_suggestion(project: ProjectBuilder, cli: Any) -> None:
    assert "did you mean 'orphan-files'?" in cli("--severity", "orphan-file=error").stderr


def test_the_older_spelling_of_eval_spec(project: ProjectBuilder, cli: Any, fine: Any) -> None:
    project.file("eval.yaml", SPEC)
    result: CliResult = cli("--eval", "eval.yaml", plugins=fine)
    assert result.exit_code == 0
    assert result.stderr == "warning: '--eval' is deprecated, use '--eval-spec'\n"


def test_placeholders_without_a_value_are_warnings(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    project.file("eval.yaml", "defaults: {model: '${A} ${B=y}'}\n" + SPEC)
    (found,) = lint_json("-e", "eval.yaml", plugins=fine)["evals"][0]["findings"]
    assert (found["code"], found["level"]) == ("unresolved-parameter", "warning")
    report = lint_json("-e", "eval.yaml", "--param", "A=1", "--param", "C=2", "--strict", plugins=fine)
    assert report["evals"][0]["findings"] == []
    assert [(found["code"], found["file"]) for found in report["findings"]] == [("unused-parameter", None)]
    assert not report["passed"]


def test_everything_of_a_project(project: ProjectBuilder, lint_json: Any, cli: Any, fine: Any) -> None:
    project.project(
        paths={"skills": ["abilities/", "more/*"], "evals": ["checks/", "none.yaml"]},
        suites={"empty": {"evals": ["no/*.yaml"]}},
    )
    for name in ("abilities/b", "more/a", "skills/c"):
        project.file(f"{name}/SKILL.md", f"---\nname: {name[-1]}\ndescription: d\n---\n")
    project.file("checks/eval.yaml", SPEC)
    project.file("evals/eval.yaml", SPEC)
    report = lint_json("--all", plugins=fine)
    assert names(report) == ["abilities/b", "more/a"]
    assert paths(report) == ["checks/eval.yaml"]
    (file,) = report["project"]
    assert file["path"] == ".vally.yaml"
    assert {(found["code"], found["level"], found["line"]) for found in file["findings"]} == {
        ("discovery-path-not-found", "error", 9),
        ("pattern-matched-nothing", "warning", 15),
        ("suite-matched-nothing", "warning", 13),
    }
    text = cli("--all", plugins=fine).stdout
    assert "\nProject: .vally.yaml\n" in text
    assert "\n0/1 project files passed\n" in text


def test_a_broken_project_file_is_part_of_the_report_of_a_project(project: ProjectBuilder, lint_json: Any) -> None:
    project.file(".vally.yaml", "environments: {x: {git: {type: wortree}}}\n")
    project.skill("a")
    report = lint_json("--all")
    assert names(report) == ["skills/a"]
    assert [found["code"] for found in report["project"][0]["findings"]] == ["invalid-value"]


class Sheet:
    """Reads lines of `name: prompt`."""

    def detect(self, path: Path) -> bool:
        return path.read_text(encoding="utf-8").startswith("sheet")

    async def load(self, path: Path, context: Any) -> ForeignSpec:
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
        if not lines:
            raise ValueError("no lines")
        stimuli = [{"name": line, "prompt": line, "graders": [{"type": "fine"}], "tag": 1} for line in lines]
        positions = {f"/stimuli/{index}/tag": (index + 2, 7) for index in range(len(lines))}
        return ForeignSpec(spec={"stimuli": stimuli}, base_dir=path.parent, positions=positions)


PROVIDER = EvalProviderSpec(name="sheet", summary="lines of text", factory=Sheet, patterns=("*.sheet",))


def test_foreign_specs_are_read_by_their_provider(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    project.file("evals/a.sheet", "sheet\none\ntwo\n")
    project.file("evals/eval.yaml", SPEC)
    report = lint_json("-e", "evals", "--eval-plugin", "sheet", plugins=[*fine, PROVIDER])
    assert paths(report) == ["evals/a.sheet", "evals/eval.yaml"]
    found = [(item["code"], item["line"], item["column"]) for item in report["evals"][0]["findings"]]
    assert found == [("unknown-stimulus-field", 2, 7), ("unknown-stimulus-field", 3, 7)]
    assert report["evals"][1]["passed"]


def test_a_provider_that_fails_is_a_finding(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    project.file("a.sheet", "sheet\n")
    report = lint_json("-e", "a.sheet", "--eval-plugin", "sheet", plugins=[*fine, PROVIDER])
    (found,) = report["evals"][0]["findings"]
    assert (found["code"], found["message"]) == ("plugin-load-failed", "plugin 'sheet': ValueError: no lines")


def test_a_plugin_that_cannot_be_loaded_is_an_error(project: ProjectBuilder, cli: Any) -> None:
    project.file("eval.yaml", SPEC)
    result: CliResult = cli("-e", "eval.yaml", "--grader-plugin", "./none.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "./none.py" in result.stderr


def test_a_grader_plugin_makes_its_type_known(project: ProjectBuilder, lint_json: Any) -> None:
    project.file(
        "graders.py",
        "from vally import GraderSpec\nFINE = GraderSpec(name='fine', summary='fine', factory=object)\n",
    )
    project.file("eval.yaml", SPEC)
    assert not lint_json("-e", "eval.yaml")["passed"]
    assert lint_json("-e", "eval.yaml", "--grader-plugin", "./graders.py")["passed"]


def experiment(project: ProjectBuilder, **keys: Any) -> None:
    project.skill("a")
    project.skill("b")
    project.file(
        "evals/x/eval.yaml",
        "environment: {skills: [../../skills/a]}\n"
        "stimuli:\n"
        "  - {name: one, prompt: x, graders: [{type: fine}]}\n"
        "  - name: two\n"
        "    prompt: x\n"
        "    environment: {skills: [../../skills/b]}\n"
        "    graders: [{type: fine}]\n",
    )
    project.experiment("first", **keys)


def test_experiments_of_a_project(project: ProjectBuilder, lint_json: Any, cli: Any, fine: Any) -> None:
    project.project()
    experiment(project, baseline="of")
    report = lint_json("--all", plugins=fine)
    assert [item["path"] for item in report["project"]] == [".vally.yaml", "first.experiment.yaml"]
    assert [found["code"] for found in report["project"][1]["findings"]] == ["unknown-baseline"]
    assert "\nExperiment: first.experiment.yaml\n" in cli("--all", plugins=fine).stdout


def test_a_baseline_that_loads_skills(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    experiment(project, baseline="on")
    (item,) = lint_json("--all", plugins=fine)["project"]
    (found,) = item["findings"]
    text = (project.root / "first.experiment.yaml").read_text(encoding="utf-8").splitlines()
    line = next(number for number, line in enumerate(text, 1) if "baseline" in line)
    assert found == {
        "code": "baseline-loads-skills",
        "level": "warning",
        "message": "baseline 'on' offers skills: a, b; variant 'off' offers none",
        "file": "first.experiment.yaml",
        "line": line,
        "column": 15,
        "pointer": "/baseline",
        "hint": "is 'off' the baseline?",
    }


def test_a_baseline_with_another_version_of_a_skill(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    variants = {"old": {"environment": {"skills": ["skills/a"]}}, "new": {"environment": {"skills": ["skills/b"]}}}
    experiment(project, baseline="old", variants=variants)
    (item,) = lint_json("--all", plugins=fine)["project"]
    assert [(found["code"], found["level"]) for found in item["findings"]] == [("baseline-loads-skills", "info")]


@pytest.mark.parametrize("keys", [{"baseline": "off"}, {}], ids=["without skills", "no baseline"])
def test_experiments_with_a_fine_baseline(
    keys: dict[str, str], project: ProjectBuilder, lint_json: Any, fine: Any
) -> None:
    experiment(project, **keys)
    (item,) = lint_json("--all", plugins=fine)["project"]
    assert item["findings"] == []


def test_what_evals_say_themselves_is_not_said_by_experiments_again(
    project: ProjectBuilder, lint_json: Any, fine: Any
) -> None:
    experiment(project)
    project.file("evals/x/eval.yaml", f"area: x\n{SPEC}")
    report = lint_json("--all", plugins=fine)
    assert [found["code"] for found in report["evals"][0]["findings"]] == ["foreign-key"]
    assert "foreign-key" not in [found["code"] for found in report["project"][0]["findings"]]


def test_only_experiment_files_are_experiments(project: ProjectBuilder, lint_json: Any, fine: Any) -> None:
    for name in ("experiment.yaml", "b.experiments.yaml", "run/a.experiment.yaml", "venv/experiment.yaml", "x.yaml"):
        project.file(f"sub/{name}", "name: x\n")
    project.file("sub/run/results.jsonl", "")
    report = lint_json("--all", plugins=fine)
    assert [item["path"] for item in report["project"]] == ["sub/b.experiments.yaml", "sub/experiment.yaml"]
