"""What shells are offered, asked the way their scripts ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vally import CommandSpec, ExecutorSpec, GraderSpec
from vally.testing import ProjectBuilder, run_cli

BREAKS = "\"'><=;|&(:"
PLUGINS = (
    ExecutorSpec(name="scripted", summary="an agent", factory=dict),
    ExecutorSpec(name="shouting", summary="a loud agent", factory=dict),
    GraderSpec(name="says", summary="a check", factory=dict),
)
Ask = Callable[..., list[tuple[str, str]]]


def answers(text: str) -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in text.splitlines()]
    assert all(len(row) == 3 for row in rows), text
    return [(kind, value) for kind, value, _ in rows]


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path / "project")
    made.project(suites={"smoke": {"filter": {"area": "net"}}, "night ly": {"evals": ["evals/second"]}})
    stimuli = [
        {"name": "my first: one", "tags": {"area": ["files", "net work"], "prio": "p0"}},
        {"name": "my-second", "tags": {"area": "net"}},
        {"name": "it's"},
    ]
    made.eval("first", stimuli, tags={"level": 1})
    made.eval("second", [{"name": "other"}])
    return made


@pytest.fixture
def zsh(project: ProjectBuilder) -> Ask:
    """Values as a shell gets them that quotes by itself."""

    def ask(line: str, cwd: Path | None = None, **env: str) -> list[tuple[str, str]]:
        asked = {"_VALLY_COMPLETE": "zsh_complete", "COMP_LINE": line, **env}
        result = run_cli(["ignored"], cwd=cwd or project.root, env=asked, plugins=PLUGINS)
        assert (result.exit_code, result.stderr) == (0, "")
        return answers(result.stdout)

    return ask


def plain(*values: str) -> list[tuple[str, str]]:
    return [("plain", value) for value in values]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vally ev", plain("eval")),
        ("vally help ev", plain("eval")),
        ("vally plugins l", plain("list")),
        ("vally eval --wor", plain("--workers", "--work-dir", "--workspace")),
        ("vally plugins list --output ", plain("text", "json")),
        ("vally eval --output=j", plain("--output=json", "--output=jsonl")),
        ("vally eval --color a", plain("auto", "always")),
        ("vally eval --executor s", plain("scripted", "shouting")),
        ("vally eval --suite ", plain("smoke", "night ly")),
        ("vally eval --suite=sm", plain("--suite=smoke")),
        ("vally eval agent --suite sm", plain("smoke")),
        ("/opt/bin/vally eval --suite sm", plain("smoke")),
        ("NO_COLOR=1 vally eval --suite sm", plain("smoke")),
        ("vally eval -e evals/first --stimulus ", plain("my first: one", "my-second", "it's")),
        ("vally eval -e evals/first --filter my", plain("my first: one", "my-second")),
        ("vally eval -e evals/first --stimulus !my-", plain("!my-second")),
        ("vally eval -e evals/first -e evals/second --stimulus o", plain("other")),
        ("vally eval --suite 'night ly' --stimulus ", plain("other")),
        ("vally eval --stimulus ", plain("my first: one", "my-second", "it's", "other")),
        ("vally eval --tag ", [("partial", "area="), ("partial", "level="), ("partial", "prio=")]),
        ("vally eval --tag area=", plain("area=files", "area=net", "area=net work")),
        ("vally eval --tag area=files,net", plain("area=files,net", "area=files,net work")),
        ("vally eval --tag level=", plain("level=1")),
        ("vally eval -e evals/sec", [("file", "evals/sec")]),
        ("vally eval --output-dir out", [("dir", "out")]),
        ("vally eval --config x", [("file", "x")]),
        ("vally eval --grader-plugin ./x", [("file", "./x")]),
        ("vally eval --run-id ", []),
        ("vally surely-not ", []),
        ("vally eval --surely-not ", []),
    ],
)
def test_values(zsh: Ask, line: str, expected: list[tuple[str, str]]) -> None:
    assert zsh(line) == expected


def test_commands_come_with_their_summaries(project: ProjectBuilder) -> None:
    env = {"_VALLY_COMPLETE": "fish_complete", "COMP_LINE": "vally plug"}
    result = run_cli([], cwd=project.root, env=env)
    assert result.stdout == "plain\tplugins\tlist what is installed and what failed to load\n"


def test_no_command_is_imported_to_offer_commands(project: ProjectBuilder) -> None:
    broken = CommandSpec(name="broken", summary="cannot be imported", factory="surely_missing:command")
    env = {"_VALLY_COMPLETE": "zsh_complete", "COMP_LINE": "vally br"}
    result = run_cli([], cwd=project.root, env=env, plugins=[broken])
    assert answers(result.stdout) == plain("broken")


def test_stimuli_made_from_data(project: ProjectBuilder, zsh: Ask) -> None:
    project.file("evals/rows/cases.jsonl", '{"id": "a"}\n{"id": "b"}\n')
    template = {"name": "row-${row.id}", "prompt": "Do ${row.id}.", "tags": {"case": "${row.id}"}}
    rows = {"stimuli_from": {"file": "cases.jsonl", "template": template}}
    project.yaml("evals/rows/eval.yaml", {"name": "rows", **rows})
    assert zsh("vally eval -e evals/rows --stimulus row") == plain("row-a", "row-b")
    assert zsh("vally eval -e evals/rows --tag case=") == plain("case=a", "case=b")


def test_another_project_file(project: ProjectBuilder, zsh: Ask) -> None:
    project.yaml("other.yaml", {"suites": {"elsewhere": {"evals": ["evals"]}}})
    assert zsh("vally eval --config other.yaml --suite ") == plain("elsewhere")
    assert zsh("vally eval --suite ", VALLY_CONFIG="other.yaml") == plain("elsewhere")
    assert zsh("vally eval --no-config --suite ") == []


def test_the_project_of_a_spec_elsewhere(tmp_path: Path, zsh: Ask) -> None:
    assert zsh("vally eval -e project/evals/first --suite sm", cwd=tmp_path) == plain("smoke")


COMMAND = """\
import click
from vally import CommandSpec

def make():
    @click.command("look")
    @click.argument("run", metavar="[RUN]", required=False)
    @click.option("--variant", multiple=True)
    @click.option("--own", shell_complete=lambda ctx, param, typed: ["mine"])
    @click.option("--output-dir", metavar="DIR")
    @click.pass_obj
    def command(context, **_):
        pass
    return command

LOOK = CommandSpec(name="look", summary="looks at runs", factory=make)
"""


@pytest.fixture
def look(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """A command of a plugin, whose parameters say nothing about completion."""
    project.file("site/look_module.py", COMMAND)
    monkeypatch.syspath_prepend(str(project.root / "site"))
    import look_module  # type: ignore[import-not-found]

    def ask(line: str) -> list[tuple[str, str]]:
        env = {"_VALLY_COMPLETE": "zsh_complete", "COMP_LINE": line}
        return answers(run_cli([], cwd=project.root, env=env, plugins=[look_module.LOOK]).stdout)

    return ask


def test_runs(project: ProjectBuilder, look: Ask) -> None:
    for name in ("2026-01-01", "2026-01-03", "2026-01-02"):
        project.file(f"vally-results/{name}/results.jsonl", "")
    project.file("vally-results/notes/readme.txt", "")
    newest_first = [f"vally-results/2026-01-0{day}" for day in (3, 2, 1)]
    assert look("vally look ") == plain(*newest_first, "latest")
    assert look("vally look la") == plain("latest")
    project.file("out/one/results.jsonl", "")
    assert look("vally look --output-dir out ") == plain("out/one", "latest")


def test_runs_below_the_results_of_the_project(project: ProjectBuilder, look: Ask) -> None:
    project.project(paths={"results": "kept"})
    project.file("kept/one/results.jsonl", "")
    assert look("vally look ") == plain("kept/one", "latest")


def test_variants_of_a_run_and_of_an_experiment(project: ProjectBuilder, look: Ask) -> None:
    manifest = {"type": "experiment-manifest", "experiment": {"variantNames": ["skill=off", "skill=on"]}}
    project.file("vally-experiment-results/one/experiment-manifest.json", json.dumps(manifest))
    assert look("vally look vally-experiment-results/one --variant ") == plain("skill=off", "skill=on")
    project.experiment("try", variants={"off": {"environment": {"skills": []}}, "on": None})
    assert look("vally look try.experiment.yaml --variant o") == plain("off", "on")
    axis = {"path": "/defaults/model", "values": ["a", "b"]}
    project.yaml("product.yaml", {"name": "p", "evals": ["evals/first"], "matrix": {"model": axis}})
    assert look("vally look product.yaml --variant ") == plain("model=a", "model=b")
    assert look("vally look evals/first/eval.yaml --variant ") == []


def test_what_a_parameter_offers_itself_comes_first(look: Ask) -> None:
    assert look("vally look --own ") == plain("mine")


@pytest.mark.parametrize("line", ["vally eval --suite ", "vally eval --stimulus ", "vally eval --tag "])
@pytest.mark.parametrize(
    "damage",
    [
        {".vally.yaml": "suites: [\n"},
        {".vally.yaml": "paths: {evals: 3}\n", "evals/first/eval.yaml": ""},
        {"evals/first/eval.yaml": "stimuli: {a: [}\n"},
        {"evals/first/eval.yaml": b"\xff\xfe\x00"},
        {"evals/first/eval.yaml": "stimuli: [3, {name: [a]}, null]\ntags: [1]\n"},
        {"evals/first/eval.yaml": "stimuli_from: {file: missing.csv}\n"},
    ],
    ids=["project-syntax", "project-error", "spec-syntax", "encoding", "shape", "no-data"],
)
def test_damaged_files_say_nothing(
    project: ProjectBuilder, zsh: Ask, line: str, damage: dict[str, str | bytes]
) -> None:
    for path, text in damage.items():
        project.file(path, text)
    assert all(kind in ("plain", "partial") for kind, _ in zsh(line))


@pytest.mark.parametrize(
    "env",
    [
        {"_VALLY_COMPLETE": "tcsh_complete"},
        {"_VALLY_COMPLETE": "bash_complete"},
        {"_VALLY_COMPLETE": "1"},
        {"_VALLY_COMPLETE": "bash_complete", "COMP_LINE": "vally 'unclosed", "COMP_POINT": "x"},
        {"_VALLY_COMPLETE": "bash_complete", "COMP_LINE": "", "COMP_POINT": "99"},
    ],
    ids=["shell", "no-line", "word", "quote", "empty"],
)
def test_strange_questions_get_no_answer(project: ProjectBuilder, env: dict[str, str]) -> None:
    result = run_cli([], cwd=project.root, env=env)
    assert (result.exit_code, result.stderr) == (0, "")


def test_plugins_of_the_project_are_not_loaded(project: ProjectBuilder, zsh: Ask) -> None:
    project.file("plugin.py", "import pathlib\npathlib.Path(__file__).with_suffix('.loaded').touch()\n")
    project.project(plugins={"graders": ["./plugin.py"], "executors": ["./plugin.py"]}, suites={"s": {"filter": {}}})
    for option in ("--suite", "--stimulus", "--executor", "--tag", "--grader-plugin"):
        zsh(f"vally eval {option} ")
    assert not (project.root / "plugin.loaded").exists()


def test_names_that_no_line_can_hold_are_left_out(project: ProjectBuilder, zsh: Ask) -> None:
    project.project(suites={"two\nlines": {"filter": {}}, "tab\tbed": {"filter": {}}, "fine": {"filter": {}}})
    assert zsh("vally eval --suite ") == plain("fine")


@pytest.fixture
def bash(project: ProjectBuilder) -> Callable[[str], list[str]]:
    def ask(line: str, behind: str = "", breaks: str = BREAKS) -> list[str]:
        env = {
            "_VALLY_COMPLETE": "bash_complete",
            "COMP_LINE": line + behind,
            "COMP_POINT": str(len(line.encode())),
            "COMP_WORDBREAKS": breaks,
        }
        result = run_cli([], cwd=project.root, env=env)
        return [value for _, value in answers(result.stdout)]

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vally eval --suite n", ["night\\ ly"]),
        ("vally eval --suite night\\ l", ["night\\ ly"]),
        ("vally eval --suite 'n", ["night ly"]),
        ('vally eval --suite "night ', ["night ly"]),
        ("vally eval --suite=n", ["night\\ ly"]),
        ("vally eval --stimulus my\\ first:", ["\\ one"]),
        ('vally eval --stimulus "my first:', ["my first: one"]),
        ("vally eval --stimulus it", ["it\\'s"]),
        ("vally eval --tag area=fi", ["files"]),
        ("vally eval --tag=area=fi", ["files"]),
        ("vally eval --tag ar", ["area="]),
    ],
)
def test_bash_gets_what_it_can_insert(bash: Callable[..., list[str]], line: str, expected: list[str]) -> None:
    assert bash(line) == expected


def test_bash_completes_at_the_cursor(bash: Callable[..., list[str]]) -> None:
    assert bash("vally eval --suite sm", " --stimulus x") == ["smoke"]


def test_bash_without_word_breaks_replaces_whole_words(bash: Callable[..., list[str]]) -> None:
    assert bash("vally eval --suite=sm", breaks=" ") == ["--suite=smoke"]


@pytest.mark.parametrize(
    ("words", "word", "expected"),
    [
        (["vally"], "ev", ["eval"]),
        (["vally", "eval", "--suite"], "", ["smoke", "'night ly'"]),
        (["vally", "eval", "--suite"], "'ni", ["'night ly'"]),
        (["C:\\bin\\vally.exe", "eval"], "--suite=sm", ["--suite=smoke"]),
        (["vally", "eval", "-e", "evals/first", "--stimulus"], "it", ["'it''s'"]),
    ],
)
def test_powershell_hands_over_words(project: ProjectBuilder, words: list[str], word: str, expected: list[str]) -> None:
    env = {"_VALLY_COMPLETE": "powershell_complete", "COMP_WORDS": "\n".join(words), "COMP_WORD": word}
    result = run_cli([], cwd=project.root, env=env)
    assert [value for _, value in answers(result.stdout)] == expected
