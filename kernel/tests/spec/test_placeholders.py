from __future__ import annotations

from typing import Any

import pytest

GRADED = "graders: [{type: completed}]"


def spec_with(line: str) -> str:
    return f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n{line}\n"


@pytest.mark.parametrize(
    ("params", "environ", "expected"),
    [
        pytest.param({}, {}, 5, id="PH-1"),
        pytest.param({"RUNS": "2"}, {}, 2, id="PH-2"),
        pytest.param({}, {"RUNS": "9"}, 5, id="PH-3"),
    ],
)
def test_runs(work: Any, params: dict[str, str], environ: dict[str, str], expected: int) -> None:
    spec = work(spec_with("defaults: {runs: ${RUNS=5}}"), params=params, environ=environ).clean
    assert spec.defaults.runs == expected


@pytest.mark.parametrize((), [pytest.param(id="PH-4")])
def test_a_quoted_scalar_stays_a_string(work: Any) -> None:
    assert work(spec_with('defaults: {model: "${M}"}'), params={"M": "7"}).clean.defaults.model == "7"
    assert work(spec_with("defaults: {model: ${M}}"), params={"M": "7"}).found == ["3:19 INVALID-TYPE"]


@pytest.mark.parametrize((), [pytest.param(id="PH-5")])
def test_a_setting_without_a_value(work: Any) -> None:
    found = work(spec_with("environment: ${ENV}"))
    assert found.found == ["3:14 UNRESOLVED-PARAMETER"]
    item = found.only("unresolved-parameter")
    assert item.message == "no value for ${ENV}"
    assert item.hint == "pass --param ENV=…"
    assert item.pointer == "/environment"


def test_lint_only_warns_and_skips_what_needs_the_value(work: Any) -> None:
    text = spec_with("environment: ${ENV}\ndefaults: {runs: ${N}, timeout: ${T}, executor: ${E}}\nname: ${X}-y")
    found = work(text, lint=True)
    assert found.found == [
        "3:14 unresolved-parameter",
        "4:18 unresolved-parameter",
        "4:33 unresolved-parameter",
        "4:49 unresolved-parameter",
        "5:7 unresolved-parameter",
    ]
    assert found.spec.defaults.runs is None


@pytest.mark.parametrize(
    ("prompt", "params", "environ", "expected"),
    [
        pytest.param("echo ${HOME}", {}, {"HOME": "/h"}, "echo ${HOME}", id="PH-6"),
        pytest.param("Deploy to ${REGION}", {"REGION": "eu"}, {}, "Deploy to eu", id="PH-7"),
        pytest.param("${X:-y} $${Z}", {}, {}, "${X:-y} $${Z}", id="PH-13"),
        ("${X:-y} $${Z}", {"Z": "1"}, {}, "${X:-y} ${Z}"),
        ("$${Z=a} ${Z=a}", {}, {}, "${Z=a} a"),
        ("${A}${B}${A}", {"A": "${B}", "B": "b"}, {}, "${B}b${B}"),
        ("${1} ${a.b} ${} ${row.x} ${eval.parent} ${A", {"A": "x"}, {}, "${1} ${a.b} ${} ${row.x} ${eval.parent} ${A"),
        ("${row_number} ${workspace}", {"row_number": "1", "workspace": "w"}, {}, "1 w"),
        ("'${A=it''s}'", {}, {}, "it''s"),
    ],
)
def test_prompts(work: Any, prompt: str, params: dict[str, str], environ: dict[str, str], expected: str) -> None:
    text = f"stimuli:\n  - name: a\n    prompt: {prompt}\n    {GRADED}\n"
    assert work(text, params=params, environ=environ).clean.stimuli[0].prompt == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [pytest.param({}, "../../a.txt", id="PH-8"), pytest.param({"ROOT": "{root}/r"}, "{root}/r/a.txt", id="PH-9")],
)
def test_paths(work: Any, environ: dict[str, str], expected: str) -> None:
    work.write("a.txt")
    work.write("r/a.txt")
    environ = {name: value.format(root=work.root) for name, value in environ.items()}
    text = spec_with("environment: {files: [{src: ${ROOT=../..}/a.txt, dest: a.txt}]}")
    found = work(text, name="x/y/eval.yaml", environ=environ)
    (staged,) = found.clean.stimuli[0].environment.files
    base = work.root / "x/y"
    assert staged.src == (base / expected.format(root=work.root)).resolve()
    # Records show the variable, not its value; a default is the author's own text.
    (shown,) = found.stimulus.document["environment"]["files"]
    assert shown["src"] == ("${ROOT=../..}/a.txt" if environ else str(work.root / "a.txt"))
    assert found.loaded.environment_values == environ


@pytest.mark.parametrize((), [pytest.param(id="PH-10")])
def test_flow_collections(work: Any) -> None:
    text = spec_with("environment: {mcpServers: {s: {type: stdio, command: c, args: [-f, ${D=out}/x, ${A=[}${B=]}]}}}")
    server = work(text).clean.stimuli[0].environment.mcp_servers["s"]
    assert server.args == ("-f", "out/x", "[]")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("${X=a: b}", "a: b", id="PH-11"),
        ("${X= # no comment}", " # no comment"),
        ("${X={a, b]}}", "{a, b]}"),
        ("'${X=it's}'", "it's"),
        ('"${X=a"b\\n}"', 'a"b\\n'),
        ("a ${X=&b *c !d}", "a &b *c !d"),
    ],
)
def test_a_value_adds_no_structure(work: Any, written: str, expected: str) -> None:
    assert work(spec_with(f"name: {written}")).clean.name == expected


@pytest.mark.parametrize("params", [pytest.param({}, id="PH-12"), {"M": "7"}])
def test_an_escaped_placeholder(work: Any, params: dict[str, str]) -> None:
    assert work(spec_with("defaults: {model: $${M}}"), params=params).clean.defaults.model == "${M}"


@pytest.mark.parametrize((), [pytest.param(id="PH-14")])
def test_a_path_without_a_value(work: Any) -> None:
    text = spec_with('environment: {env: {TOKEN: "${CI_TOKEN}"}}')
    assert work(text).found == ["3:28 UNRESOLVED-PARAMETER"]
    found = work(text, environ={"CI_TOKEN": "abcdefgh"})
    assert found.clean.stimuli[0].environment.env == {"TOKEN": "abcdefgh"}
    assert found.stimulus.document["environment"]["env"] == {"TOKEN": "${CI_TOKEN}"}
    assert found.loaded.environment_values == {"CI_TOKEN": "abcdefgh"}


def test_an_empty_value_is_the_empty_string(work: Any) -> None:
    assert work(spec_with("description: ${X=}")).clean.description == ""
    assert work(spec_with("environment: {env: {A: ${X=}}}")).clean.stimuli[0].environment.env == {"A": ""}
    assert work(spec_with("name: ${X=}")).found == ["3:7 INVALID-VALUE"]


CLASSES = {
    "literal": [
        ("stimulus", "turns: ['${X}']", "prompt"),
        ("stimulus", "rubric: ['${X}']", None),
        ("root", "description: ${X}", None),
        ("environment", "commands: ['${X}']", None),
        ("stimulus", "golden_command: {command: c, args: ['${X}'], env: {A: '${X}'}}", None),
        ("stimulus", "simulation: {user: {goal: '${X}'}}", None),
        ("stimulus", "golden_trajectory: {inline: {a: '${X}'}}", None),
        ("stimulus", "graders: [{type: output-contains, config: {substring: '${X}'}}]", "graders"),
    ],
    "process": [
        ("environment", "skills: ['${X}']", None),
        ("environment", "files: [{src: '${X}', dest: d}]", None),
        ("environment", "git: {type: clone, url: 'https://${X}/r.git'}", None),
        ("environment", "git: {type: worktree, source: '${X}'}", None),
        ("environment", "mcpServers: {s: {type: stdio, command: '${X}', env: {A: '${X}'}}}", None),
        ("environment", "env: {A: '${X}'}", None),
        ("root", "defaults: {executor: {name: e, config: {a: {b: '${X}'}}}}", None),
        ("root", "defaults: {judge_provider: {type: openai, baseUrl: 'https://${X}'}}", None),
        ("stimulus", "golden_patch: {path: '${X}'}", None),
        ("stimulus", "attachments: ['${X}']", None),
        ("root", "stimuli_from: {file: '${X}', template: {prompt: p}}", None),
    ],
    "setting": [
        ("root", "name: ${X}", None),
        ("root", "tags: {a: ['${X}']}", None),
        ("root", "metadata: {a: '${X}'}", None),
        ("root", "defaults: {model: '${X}', executor: '${X}'}", None),
        ("root", "scoring: {threshold: ${X}}", None),
        ("environment", "commandTimeout: ${X}", None),
        ("environment", "git: {type: worktree, ref: '${X}'}", None),
        ("environment", "files: [{src: '.', dest: '${X}'}]", None),
        ("stimulus", "constraints: {max_turns: ${X}}", None),
        ("stimulus", "graders: [{type: '${X}', name: '${X}'}]", "graders"),
        ("stimulus", "artifacts: {include: ['${X}']}", None),
    ],
}


@pytest.mark.parametrize(
    ("kind", "place", "line", "replaces"),
    [(kind, *case) for kind, cases in CLASSES.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else None,
)
def test_classes(work: Any, kind: str, place: str, line: str, replaces: str | None) -> None:
    keys = {"prompt": "prompt: p", "graders": GRADED}
    keys.pop(replaces or "", None)
    stimulus = [*keys.values(), line] if place == "stimulus" else list(keys.values())
    text = "stimuli:\n  - name: a\n" + "".join(f"    {key}\n" for key in stimulus)
    if place == "root":
        text += f"{line}\n"
    if place == "environment":
        text += f"environment: {{{line}}}\n"
    without = work(text)
    assert ("unresolved-parameter" in without.codes) == (kind != "literal")
    with_environment = work(text, environ={"X": "0.5"})
    assert ("unresolved-parameter" in with_environment.codes) == (kind == "setting")
    assert with_environment.loaded.environment_values == ({"X": "0.5"} if kind == "process" else {})
    with_parameter = work(text, params={"X": "0.5"}, environ={"X": "1"})
    assert "unresolved-parameter" not in with_parameter.codes
    assert with_parameter.loaded.environment_values == {}
    assert with_parameter.loaded.used_params == {"X"}


def test_the_workspace_word_stays_in_cwd_only(work: Any) -> None:
    text = spec_with("environment: {mcpServers: {s: {type: stdio, command: '${workspace=c}', cwd: '${workspace}/x'}}}")
    server = work(text, params={"workspace": "w"}).clean.stimuli[0].environment.mcp_servers["s"]
    assert (server.command, server.cwd) == ("w", "${workspace}/x")


def test_lint_skips_what_an_unresolved_config_needs(work: Any) -> None:
    text = spec_with(
        "defaults: {executor: {name: picky, config: {fixtureDir: '${D}'}}}\n"
        "environment: {skills: ['${S}'], git: {type: '${T}'}, files: [{src: '${F}', dest: f}]}\n"
        "graders: [{type: skill-invocation, config: {required: [s]}}]"
    )
    found = work(text, lint=True)
    assert found.codes == ["unresolved-parameter"] * 4


def test_ignored_content_needs_no_values(work: Any) -> None:
    found = work(spec_with("x-note: ${A}\narea: {deep: [${B}]}\n# ${C}"))
    assert found.found == ["4:1 foreign-key"]
    assert found.loaded.used_params == frozenset()


def test_keys_are_never_filled(work: Any) -> None:
    assert work(spec_with("metadata: {'${X}': 1}"), params={"X": "a"}).clean.metadata == {"${X}": 1}


def test_placeholders_do_not_shift_positions(work: Any) -> None:
    text = spec_with('metadata: {a: "${LONG_NAME=default text}", a: 1}')
    assert work(text).found == ["3:44 DUPLICATE-KEY"]


def test_noncharacters_of_the_file_survive(work: Any) -> None:
    odd = "".join(map(chr, [*range(0xFDD0, 0xFDF0), 0x1FFFE, 0x10FFFF]))
    prompt = f'"{odd} \\uFDD0\\U0001FFFF ${{X}}${{X}} \\uFDD1"'
    text = f"stimuli:\n  - name: a\n    prompt: {prompt}\n    {GRADED}\n"
    assert work(text, params={"X": "v"}).clean.stimuli[0].prompt == f"{odd} \ufdd0\U0001ffff vv \ufdd1"


def test_many_different_placeholders(work: Any) -> None:
    names = [f"N{number}" for number in range(3000)]
    prompt = " ".join(f"${{{name}={name.lower()}}}" for name in names)
    text = f"stimuli:\n  - name: a\n    prompt: {prompt}\n    {GRADED}\n"
    assert work(text).clean.stimuli[0].prompt == " ".join(name.lower() for name in names)


def test_an_aliased_scalar_has_the_class_of_its_place(work: Any) -> None:
    text = f"x-v: &v echo ${{X}}\nstimuli:\n  - {{name: a, prompt: *v, {GRADED}, environment: {{env: {{A: *v}}}}}}\n"
    stimulus = work(text, environ={"X": "1"}).clean.stimuli[0]
    assert stimulus.prompt == "echo ${X}"
    assert stimulus.environment.env == {"A": "echo 1"}


def test_environments_of_the_project_file(work: Any) -> None:
    work.project("environments:\n  e:\n    env: {A: '${X}', B: '${Y=b}'}\n")
    text = spec_with("environment: e")
    found = work(text)
    assert found.found == ["3:14 UNRESOLVED-PARAMETER"]
    item = found.diagnostics[0]
    assert (item.file, item.pointer) == (".vally.yaml", "/environments/e/env/A")
    found = work(text, params={"X": "1"})
    assert found.clean.stimuli[0].environment.env == {"A": "1", "B": "b"}
    assert found.loaded.used_params == {"X", "Y"}
    # A mention in an environment that the spec does not use counts as well.
    assert work(spec_with("name: n")).loaded.used_params == {"X", "Y"}


def test_values_of_process_variables_are_redacted_in_messages(work: Any) -> None:
    text = spec_with("defaults: {executor: {name: picky, config: {fixtureDir: '${DIR}'}}}")
    item = work(text, environ={"DIR": "secret-place"}).only("invalid-executor-config")
    assert item.message == "executor 'picky': cannot open <redacted:DIR>"


@pytest.mark.parametrize(
    "text",
    [
        "defaults: {runs: '${API_TOKEN}'}",
        "defaults: {timeout: '${API_TOKEN}'}",
        # Texts are cut at 80 characters, which lies within the secret.
        f"defaults: {{runs: '{'x' * 70}${{API_TOKEN}}'}}",
        "environment: {skills: ['${VARIABLE}*']}",
        "environment: {files: [{src: f, dest: '/${API_TOKEN}'}]}",
        "environment: '${API_TOKEN}'",
        "scoring: {weights: {a: '${API_TOKEN}'}}",
        "graders: [{type: '${API_TOKEN}'}]",
        "graders: [{type: output-matches, config: {pattern: '[${API_TOKEN}'}}]",
        "stimuli_from: {file: '${VARIABLE}.csv', template: {prompt: p}}",
    ],
)
def test_secrets_stand_in_no_diagnostic(work: Any, text: str) -> None:
    spec = f"{text}\nstimuli: [{{name: 'a ${{API_TOKEN}}', prompt: p}}, {{name: 'a ${{API_TOKEN}}', prompt: p}}]\n"
    given = {"params": {"API_TOKEN": "hunter2hunter2"}, "environ": {"VARIABLE": "much/too/private"}}
    found = work(spec, **given).diagnostics
    assert len(found) >= 2
    said = "\n".join(f"{item.message} {item.hint} {item.context} {item.related}" for item in found)
    assert not any(secret in said for secret in ("hunt", "priv"))
    assert "<redacted:API_TOKEN>" in said


def test_parameters_that_are_no_secrets_are_told(work: Any) -> None:
    spec = "defaults: {runs: '${RUNS}'}\nstimuli: [{name: a, prompt: p}]\n"
    found = work(spec, params={"RUNS": "production", "MY_TOKEN": "production"})
    assert found.only("invalid-type").message == "defaults.runs must be an integer, got 'production'"
