"""Experiments resolved: every eval in every variant, drift, variables of evals, and hashes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vally import (
    Diagnostic,
    GraderSpec,
    ResolvedExperiment,
    ResolvedSpec,
    SpecError,
    Stimulus,
    canonical_json,
    find_project,
    merge_variant_override,
    plan_digest,
    read_experiment,
    resolve_experiment,
)
from vally.model.jsonio import content_hash

GRADED = "graders: [{type: completed}]"
ONE = f"stimuli: [{{name: a, prompt: p, {GRADED}}}]\n"
SKILLS = "vary: [/environment/skills]\nvariants:\n  off: {environment: {skills: []}}\n  on: {}\n"
SERVER = "{type: stdio, command: c}"


class Lab:
    """A project with evals and an experiment over all of them."""

    def __init__(self, work: Any) -> None:
        self.work = work
        self.root: Path = work.root
        work.project()

    def eval(self, text: str, path: str = "eval.yaml") -> Path:
        return self.work.write(path, text)

    def experiment(self, text: str, path: str = "x.yaml", evals: str = "eval.yaml") -> Path:
        return self.work.write(path, f"name: e\nevals: ['{evals}']\n{text}")

    def read(self, text: str, path: str = "x.yaml", evals: str = "eval.yaml", **options: Any) -> ResolvedExperiment:
        file = self.experiment(text, path, evals)
        return read_experiment(
            file, **{"project": find_project(self.root, self.root), "host": self.work.host, **options}
        )

    def clean(self, text: str, *arguments: Any, **options: Any) -> ResolvedExperiment:
        resolved = self.read(text, *arguments, **options)
        assert shown(resolved.diagnostics) == []
        return resolved


@pytest.fixture
def lab(work: Any) -> Lab:
    return Lab(work)


def shown(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    """`file:line:column CODE pointer` of each; warnings in small letters."""
    return [
        f"{item.file}:{item.line}:{item.column} "
        f"{item.code.upper() if item.level == 'error' else item.code} {item.pointer}"
        for item in diagnostics
    ]


def by_variant(resolved: ResolvedExperiment) -> dict[str, ResolvedSpec]:
    return {item.variant: item for item in resolved.specs}


def stimuli(resolved: ResolvedExperiment, variant: str) -> dict[str, Stimulus]:
    return {stimulus.name: stimulus for stimulus in by_variant(resolved)[variant].spec.stimuli}


def skill_names(stimulus: Stimulus) -> list[str] | None:
    skills = stimulus.merged_environment.skills
    return None if skills is None else [path.name for path in skills]


# Rows of the chapter


@pytest.mark.parametrize((), [pytest.param(id="EX-1")])
def test_two_variants(lab: Lab) -> None:
    lab.work.skill("r")
    lab.eval("environment: {skills: [r]}\n" + ONE)
    resolved = lab.clean(SKILLS)
    assert [(item.variant, item.eval_file) for item in resolved.specs] == [("off", "eval.yaml"), ("on", "eval.yaml")]
    assert skill_names(stimuli(resolved, "off")["a"]) == []
    assert skill_names(stimuli(resolved, "on")["a"]) == ["r"]


@pytest.mark.parametrize((), [pytest.param(id="EX-2")])
def test_drift(lab: Lab) -> None:
    lab.work.skill("r")
    lab.eval("environment: {skills: [r]}\ndefaults: {model: m1}\n" + ONE)
    resolved = lab.read(SKILLS.replace("on: {}", "on: {overrides: {model: m2}}"))
    assert shown(resolved.diagnostics) == ["x.yaml:6:27 EXPERIMENT-DRIFT /variants/on/overrides/model"]
    (item,) = resolved.diagnostics
    assert item.message == "variants 'off' and 'on' differ outside vary: /defaults/model"
    assert [(note.file, note.line, note.column, note.message) for note in item.related] == [
        ("eval.yaml", 2, 19, "/defaults/model is \"m1\" in variant 'off'"),
        ("x.yaml", 6, 27, "/defaults/model is \"m2\" in variant 'on'"),
    ]


@pytest.mark.parametrize((), [pytest.param(id="EX-3")])
def test_skills_replace_those_of_stimuli(lab: Lab) -> None:
    lab.work.skill("r")
    lab.work.skill("s")
    lab.eval(
        f"environment: {{skills: [r]}}\nstimuli: [{{name: a, prompt: p, environment: {{skills: [s]}}, {GRADED}}}]\n"
    )
    resolved = lab.clean(SKILLS)
    assert skill_names(stimuli(resolved, "off")["a"]) == []
    assert skill_names(stimuli(resolved, "on")["a"]) == ["r", "s"]
    assert stimuli(resolved, "off")["a"].document["environment"] == {"skills": []}


@pytest.mark.parametrize((), [pytest.param(id="EX-4")])
def test_a_matrix(lab: Lab) -> None:
    lab.work.skill("x")
    lab.eval(ONE)
    resolved = lab.clean(
        "matrix:\n  skill: {path: /environment/skills, values: [off: [], on: [x]]}\n"
        "  model: {path: /defaults/model, values: [a, b]}\n"
    )
    found = [(item.variant, item.spec.defaults.model, skill_names(item.spec.stimuli[0])) for item in resolved.specs]
    assert found == [
        ("skill=off,model=a", "a", []),
        ("skill=off,model=b", "b", []),
        ("skill=on,model=a", "a", ["x"]),
        ("skill=on,model=b", "b", ["x"]),
    ]


@pytest.mark.parametrize((), [pytest.param(id="EX-7")])
def test_variables_of_the_eval(lab: Lab) -> None:
    skill = lab.work.skill("lab/plugins/p/skills/s")
    lab.eval(ONE, "lab/tests/p/s/eval.yaml")
    text = "vary: [/environment/skills]\nvariants:\n  off: {environment: {skills: []}}\n"
    value = "plugins/${eval.grandparent}/skills/${eval.parent}"
    resolved = lab.clean(f"{text}  on: {{environment: {{skills: ['{value}']}}}}\n", "lab/x.yaml", "tests/*/*/eval.yaml")
    assert stimuli(resolved, "on")["a"].merged_environment.skills == (skill,)
    assert by_variant(resolved)["on"].environments["environment"]["skills"] == ["lab/plugins/p/skills/s"]
    assert resolved.config is not None
    assert resolved.config.variants[1].environment == {"skills": [value]}


@pytest.mark.parametrize((), [pytest.param(id="EX-8")])
def test_overrides_of_the_experiment(lab: Lab) -> None:
    lab.eval("defaults: {runs: 3, timeout: 1m}\n" + ONE)
    resolved = lab.clean(
        "vary: [/defaults/model, /defaults/timeout]\noverrides: {runs: 1, timeout: 2m}\n"
        "variants: {a: {overrides: {model: m}}, b: {overrides: {timeout: 3m}}}\n"
    )
    first, second = (item.spec.defaults for item in resolved.specs)
    assert (first.runs, first.timeout_ms, first.model) == (1, 120_000, "m")
    assert (second.runs, second.timeout_ms, second.model) == (1, 180_000, None)


@pytest.mark.parametrize((), [pytest.param(id="EX-9")])
def test_null_deletes_a_variable(lab: Lab) -> None:
    lab.eval('environment: {env: {A: "1", B: "2"}}\n' + ONE)
    resolved = lab.clean("vary: [/environment/env]\nvariants: {a: {environment: {env: {A: ~}}}, b: {}}\n")
    assert stimuli(resolved, "a")["a"].merged_environment.env == {"B": "2"}
    assert stimuli(resolved, "b")["a"].merged_environment.env == {"A": "1", "B": "2"}


@pytest.mark.parametrize((), [pytest.param(id="EX-10")])
def test_null_deletes_all_servers(lab: Lab) -> None:
    lab.eval(
        f"environment: {{mcpServers: {{root: {SERVER}}}}}\nagent_environment: {{mcpServers: {{agent: {SERVER}}}}}\n"
        f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n"
        f"  - {{name: b, prompt: p, environment: {{mcpServers: {{own: {SERVER}}}}}, {GRADED}}}\n"
    )
    resolved = lab.clean(
        "vary: [/environment/mcpServers, /agent_environment/mcpServers]\n"
        "variants: {none: {environment: {mcpServers: ~}}, all: {}}\n"
    )
    for stimulus in stimuli(resolved, "none").values():
        assert stimulus.merged_environment.mcp_servers == {}
        assert "environment" not in stimulus.document
        assert stimulus.document.get("agent_environment", {}) == {}
    assert set(stimuli(resolved, "all")["b"].merged_environment.mcp_servers) == {"root", "agent", "own"}


# merge_variant_override


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ({}, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1, 2]}, {"a": []}, {"a": []}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({}, {"a": None}, {}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": [{"b": 1}]}, {"a": [{"c": None}]}, {"a": [{"c": None}]}),
    ],
)
def test_merge_variant_override(base: dict[str, Any], over: dict[str, Any], expected: dict[str, Any]) -> None:
    before = (canonical_json(base), canonical_json(over))
    merged = merge_variant_override(base, over)
    assert merged == expected
    for value in merged.values():
        if isinstance(value, dict):
            value["changed"] = True
    assert (canonical_json(base), canonical_json(over)) == before


# Defaults


def test_overrides_replace_keys_as_a_whole(lab: Lab) -> None:
    lab.eval("defaults: {executor: {name: picky, config: {fixtureDir: x}}}\n" + ONE)
    resolved = lab.clean("vary: [/defaults/executor]\nvariants: {a: {}, b: {overrides: {executor: {name: picky}}}}\n")
    first, second = (item.spec.defaults.executor for item in resolved.specs)
    assert first is not None
    assert first.config == {"fixtureDir": "x"}
    assert second is not None
    assert second.config == {}


def test_a_deep_pointer_sets_a_part(lab: Lab) -> None:
    lab.eval("defaults: {executor: {name: picky, config: {fixtureDir: x}}}\n" + ONE, "a/eval.yaml")
    lab.eval("defaults: {executor: picky}\n" + ONE, "b/eval.yaml")
    resolved = lab.clean(
        "matrix: {dir: {path: /defaults/executor/config/fixtureDir, values: [one, two]}}\n", evals="*/eval.yaml"
    )
    chosen = [item.spec.defaults.executor for item in resolved.specs]
    assert [(choice.name, choice.config) for choice in chosen if choice] == [
        ("picky", {"fixtureDir": "one"}),
        ("picky", {"fixtureDir": "two"}),
    ] * 2


def test_settings_of_the_command_line_beat_all(lab: Lab) -> None:
    lab.eval("defaults: {judge_model: j1}\n" + ONE)
    text = "vary: [/defaults/judge_model]\nvariants: {a: {}, b: {overrides: {judge_model: j2}}}\n"
    settings = {"judge_model": "j3", "judge_reasoning_effort": "low"}
    resolved = lab.read(text, settings=settings)
    assert {item.spec.defaults.judge_model for item in resolved.specs} == {"j3"}
    assert {item.spec.defaults.judge_reasoning_effort for item in resolved.specs} == {"low"}
    assert shown(resolved.diagnostics) == ["x.yaml:3:8 vary-unused /vary/0"]


def test_defaults_of_another_spelling_are_no_drift(lab: Lab) -> None:
    lab.eval("defaults: {timeout: 90s, executor: picky}\n" + ONE)
    lab.clean("vary: []\nvariants: {a: {}, b: {overrides: {timeout: 1m30s, executor: {name: picky, config: {}}}}}\n")


def test_the_model_of_the_document(lab: Lab) -> None:
    lab.eval("defaults: {model: m1, runs: 2}\n" + ONE)
    resolved = lab.clean("matrix: {m: {path: /defaults/model, values: [m1, m2]}}\n")
    assert [item.spec.document["defaults"] for item in resolved.specs] == [
        {"model": "m1", "runs": 2},
        {"model": "m2", "runs": 2},
    ]
    assert [dict(item.defaults) for item in resolved.specs] == [{"model": "m1", "runs": 2}, {"model": "m2", "runs": 2}]


# Environments


@pytest.mark.parametrize(
    ("root", "variant", "expected"),
    [
        ("files: [{src: f, dest: a}]", "files: []", ((), (), 60_000)),
        ("commands: [x]", "commands: [y]", ((), ("y",), 60_000)),
        ("commands: [x]", "commands: ~", ((), (), 60_000)),
        ("files: [{src: f, dest: a}]", "files: [{src: lab/g, dest: b}]", (("lab/g",), (), 60_000)),
        ("commandTimeout: 5s", "commandTimeout: 7s", ((), (), 7_000)),
    ],
)
def test_environments_merge_deeply(lab: Lab, root: str, variant: str, expected: Any) -> None:
    lab.work.write("f")
    lab.work.write("lab/g")
    lab.eval(f"environment: {{{root}}}\n" + ONE, "evals/eval.yaml" if "src: lab" not in variant else "eval.yaml")
    lab.work.write("evals/f")
    evals = "evals/eval.yaml" if "src: lab" not in variant else "eval.yaml"
    resolved = lab.clean(
        f"vary: [/environment]\nvariants: {{a: {{environment: {{{variant}}}}}, b: {{}}}}\n", "x.yaml", evals
    )
    found = stimuli(resolved, "a")["a"].merged_environment
    files = tuple(item.src.relative_to(lab.root).as_posix() for item in found.files)
    assert (files, found.commands, found.command_timeout_ms) == expected


def test_paths_of_a_variant_start_from_the_experiment(lab: Lab) -> None:
    lab.work.write("lab/f")
    lab.work.write("evals/f")
    lab.eval("environment: {files: [{src: f, dest: root}]}\n" + ONE, "evals/eval.yaml")
    text = "vary: [/environment]\nvariants: {a: {environment: {files: [{src: f, dest: own}]}}, b: {}}\n"
    resolved = lab.clean(text, "lab/x.yaml", "../evals/eval.yaml")
    sources = [[item.src for item in spec.spec.stimuli[0].merged_environment.files] for spec in resolved.specs]
    assert sources == [[lab.root / "lab/f"], [lab.root / "evals/f"]]


def test_a_named_environment_replaces_the_root(lab: Lab) -> None:
    lab.work.skill("big")
    lab.work.skill("r")
    lab.work.project("environments: {big: {skills: [big], env: {A: '1'}}, base: {skills: [r], env: {B: '2'}}}\n")
    lab.eval("environment: base\n" + ONE, "evals/eval.yaml")
    text = "vary: [/environment]\nvariants: {a: {environment: big}, b: {environment: {env: {C: '3'}}}, c: {}}\n"
    resolved = lab.clean(text, "x.yaml", "evals/*")
    found = {name: stimuli(resolved, name)["a"].merged_environment for name in "abc"}
    assert {name: dict(environment.env) for name, environment in found.items()} == {
        "a": {"A": "1"},
        "b": {"B": "2", "C": "3"},
        "c": {"B": "2"},
    }
    assert [skill_names(stimuli(resolved, name)["a"]) for name in "abc"] == [["big"], ["r"], ["r"]]


def test_a_name_with_a_variable(lab: Lab) -> None:
    lab.work.project("environments: {env-p: {commands: [x]}}\n")
    lab.eval(ONE, "p/eval.yaml")
    lab.eval(ONE, "q/eval.yaml")
    text = "vary: [/environment]\nvariants: {a: {}, b: {environment: 'env-${eval.parent}'}}\n"
    resolved = lab.read(text, "x.yaml", "*/eval.yaml")
    assert shown(resolved.diagnostics) == ["x.yaml:4:36 UNKNOWN-ENVIRONMENT /variants/b/environment"]
    (item,) = resolved.diagnostics
    assert (item.message, item.context) == ("no environment named 'env-q' in .vally.yaml", "variant 'b'")
    assert resolved.specs[1].spec.stimuli[0].merged_environment.commands == ("x",)


def test_capability_keys_of_both_environments(lab: Lab) -> None:
    for name in "rstuv":
        lab.work.skill(name)
    lab.eval(
        "environment: {skills: [r]}\nagent_environment: {skills: [s]}\n"
        f"stimuli: [{{name: a, prompt: p, agent_environment: {{skills: [t]}}, {GRADED}}}]\n"
    )
    resolved = lab.clean(
        "vary: [/environment/skills, /agent_environment/skills]\nvariants:\n"
        "  one: {environment: {skills: [u]}}\n  other: {agent_environment: {skills: [v]}}\n"
        "  both: {environment: {skills: [u]}, agent_environment: {skills: [v]}}\n  gone: {environment: {skills: ~}}\n"
        "  all: {}\n"
    )
    found = {name: skill_names(stimuli(resolved, name)["a"]) for name in ("one", "other", "both", "gone", "all")}
    assert found == {"one": ["u"], "other": ["v"], "both": ["u", "v"], "gone": None, "all": ["r", "s", "t"]}
    document = stimuli(resolved, "one")["a"].document
    assert document["environment"] == {"skills": [str(lab.root / "u")]}
    assert "agent_environment" not in document


def test_servers_merge_deeply_into_those_of_stimuli(lab: Lab) -> None:
    lab.eval(
        f"environment: {{mcpServers: {{db: {SERVER}, web: {SERVER}}}}}\n"
        f"stimuli:\n  - {{name: a, prompt: p, {GRADED}}}\n"
        "  - {name: b, prompt: p, environment: {mcpServers: {db: {type: stdio, command: own, args: [y]}}}, "
        f"{GRADED}}}\n"
    )
    resolved = lab.clean(
        "vary: [/environment/mcpServers]\n"
        "variants: {a: {environment: {mcpServers: {db: {args: [x], timeout: 5s}, web: ~}}}, b: {}}\n"
    )
    found = {name: item.merged_environment.mcp_servers for name, item in stimuli(resolved, "a").items()}
    assert {name: list(servers) for name, servers in found.items()} == {"a": ["db"], "b": ["db"]}
    assert (found["a"]["db"].command, found["a"]["db"].args) == ("c", ("x",))
    assert (found["b"]["db"].command, found["b"]["db"].args, found["b"]["db"].timeout_ms) == ("own", ("x",), 5000)
    assert stimuli(resolved, "b")["b"].merged_environment.mcp_servers["db"].args == ("y",)


def test_a_server_keeps_the_directory_that_its_command_came_from(lab: Lab) -> None:
    lab.eval(f"environment: {{mcpServers: {{db: {SERVER}}}}}\n" + ONE, "evals/eval.yaml")
    resolved = lab.clean(
        "vary: [/environment/mcpServers]\nvariants:\n  a: {environment: {mcpServers: {db: {args: [x], cwd: d}}}}\n"
        "  b: {environment: {mcpServers: {db: {command: ./c}}}}\n",
        "lab/x.yaml",
        "../evals/eval.yaml",
    )
    first, second = (item.spec.stimuli[0].merged_environment.mcp_servers["db"] for item in resolved.specs)
    assert (first.base_dir, first.cwd) == (lab.root / "evals", str(lab.root / "lab/d"))
    assert (second.base_dir, second.cwd) == (lab.root / "lab", None)


def test_an_item_of_a_list(lab: Lab) -> None:
    lab.eval("environment: {mcpServers: {db: {type: stdio, command: c, args: [-m, x]}}}\n" + ONE)
    resolved = lab.clean("matrix: {m: {path: /environment/mcpServers/db/args/1, values: [y, z]}}\n")
    servers = [item.spec.stimuli[0].merged_environment.mcp_servers["db"] for item in resolved.specs]
    assert [server.args for server in servers] == [("-m", "y"), ("-m", "z")]


def test_variants_share_what_they_do_not_change_only_with_themselves(lab: Lab) -> None:
    """Changing one copy of an environment in memory changes no other."""
    lab.eval('environment: {env: {A: "1"}}\n' + ONE)
    resolved = lab.clean("vary: [/environment/commands]\nvariants: {a: {environment: {commands: [x]}}, b: {}}\n")
    first, second = (item.spec.stimuli[0] for item in resolved.specs)
    first.merged_environment.env["A"] = "changed"  # type: ignore[index]
    assert second.merged_environment.env == {"A": "1"}
    assert first.environment.env == {"A": "1"}


# Variables


def test_an_eval_without_the_directory(lab: Lab) -> None:
    lab.eval(ONE)
    lab.eval(ONE, "p/eval.yaml")
    env = "{A: '${eval.parent}', B: '${eval.grandparent=none}'}"
    text = f"vary: [/environment/env]\nvariants: {{a: {{}}, b: {{environment: {{env: {env}}}}}}}\n"
    resolved = lab.read(text, "x.yaml", "{,p/}eval.yaml")
    assert shown(resolved.diagnostics) == ["x.yaml:4:46 UNRESOLVED-VARIABLE /variants/b/environment/env/A"]
    (item,) = resolved.diagnostics
    assert (item.message, item.context) == ("${eval.parent} has no value for eval.yaml", "variant 'b'")
    assert resolved.specs[3].spec.stimuli[0].merged_environment.env == {"A": "p", "B": "none"}


def test_a_variable_is_always_text(lab: Lab) -> None:
    lab.eval(ONE, "5/eval.yaml")
    values = "[plain: '${eval.parent}', raw: '$${eval.parent}', x: n-${eval.parent}]"
    text = f"matrix: {{m: {{path: /environment/env/A, values: {values}}}}}\n"
    resolved = lab.clean(text, "x.yaml", "5/eval.yaml")
    found = [item.spec.stimuli[0].merged_environment.env["A"] for item in resolved.specs]
    assert found == ["5", "${eval.parent}", "n-5"]


def test_process_variables_stay_placeholders_in_documents(lab: Lab) -> None:
    lab.work.skill("p/s")
    lab.eval(ONE, "p/eval.yaml")
    text = "vary: [/environment]\nvariants: {a: {}, b: {environment: {skills: ['${ROOT}/${eval.parent}/s']}}}\n"
    resolved = lab.clean(text, "x.yaml", "p/eval.yaml", environ={"ROOT": str(lab.root)})
    assert stimuli(resolved, "b")["a"].merged_environment.skills == (lab.root / "p/s",)
    assert by_variant(resolved)["b"].environments["environment"] == {"skills": ["${ROOT}/p/s"]}
    assert resolved.environment_values == {"ROOT": str(lab.root)}
    assert resolved.used_params == {"ROOT"}


# Findings


def test_findings_name_their_variants(lab: Lab) -> None:
    lab.eval("environment: {skills: [gone]}\n" + ONE)
    text = "vary: [/environment/skills]\nvariants:\n  a: {}\n  b: {}\n  c: {environment: {skills: [lost]}}\n"
    resolved = lab.read(text)
    assert shown(resolved.diagnostics) == [
        "eval.yaml:1:24 SKILL-NOT-FOUND /environment/skills/0",
        "x.yaml:7:30 SKILL-NOT-FOUND /variants/c/environment/skills/0",
    ]
    assert [item.context for item in resolved.diagnostics] == ["variants 'a', 'b'", "variant 'c'"]


def test_a_finding_of_all_variants_names_none(lab: Lab) -> None:
    lab.eval("environment: {files: [{src: gone, dest: f}]}\nstimuli: [{name: a, prompt: p}]\n")
    lab.work.skill("x")
    resolved = lab.read("vary: [/environment/skills]\nvariants: {a: {}, b: {environment: {skills: [x]}}}\n")
    assert shown(resolved.diagnostics) == [
        "eval.yaml:1:29 ENVIRONMENT-FILE-NOT-FOUND /environment/files/0/src",
        "eval.yaml:2:11 no-graders /stimuli/0",
    ]
    assert [item.context for item in resolved.diagnostics] == [None, "stimulus 'a'"]


def test_what_no_variant_uses_is_not_missed(lab: Lab) -> None:
    lab.eval("environment: {skills: [gone]}\n" + ONE)
    lab.work.skill("x")
    lab.clean("matrix: {m: {path: /environment/skills, values: [a: [], b: [x]]}}\n")


def test_a_mistake_in_a_variant_is_reported_once(lab: Lab) -> None:
    lab.eval(ONE, "p/eval.yaml")
    lab.eval(ONE, "q/eval.yaml")
    text = "vary: [/environment]\nvariants: {a: {}, b: {environment: {skils: []}, overrides: {runs: x}}}\n"
    resolved = lab.read(text, "x.yaml", "*/eval.yaml")
    assert shown(resolved.diagnostics) == [
        "x.yaml:4:37 UNKNOWN-KEY /variants/b/environment/skils",
        "x.yaml:4:67 INVALID-TYPE /variants/b/overrides/runs",
    ]


def test_mistakes_after_merging(lab: Lab) -> None:
    lab.eval(ONE)
    resolved = lab.read(
        "vary: [/environment]\nvariants:\n  a: {environment: {mcpServers: {db: {args: [x]}}}}\n"
        "  b: {environment: {git: {ref: x}}}\n"
    )
    assert [(item.line, item.column, item.code, item.pointer) for item in resolved.diagnostics] == [
        (5, 38, "missing-key", "/variants/a/environment/mcpServers/db/command"),
        (6, 26, "missing-key", "/variants/b/environment/git/type"),
    ]


def test_servers_that_are_none(lab: Lab) -> None:
    lab.eval(ONE)
    resolved = lab.read("vary: [/environment]\nvariants: {a: {}, b: {environment: {mcpServers: x}}}\n")
    assert shown(resolved.diagnostics) == ["x.yaml:4:49 INVALID-TYPE /variants/b/environment/mcpServers"]


def test_two_skills_of_a_variant_with_one_name(lab: Lab) -> None:
    lab.eval(ONE)
    lab.work.skill("one/s")
    lab.work.skill("two/s")
    resolved = lab.read("vary: [/environment]\nvariants: {a: {}, b: {environment: {skills: [one/s, two/s]}}}\n")
    assert shown(resolved.diagnostics) == ["x.yaml:4:53 SKILL-NAME-COLLISION /variants/b/environment/skills/1"]


def test_a_control_variant_under_test(lab: Lab) -> None:
    lab.work.skill("x")
    lab.eval("environment: {skills: [x]}\nstimuli: [{name: a, prompt: p, constraints: {expect_skills: [x]}}]\n")
    resolved = lab.read(SKILLS)
    assert shown(resolved.diagnostics) == [
        "eval.yaml:2:61 nothing-under-test /stimuli/0/constraints/expect_skills",
    ]
    assert all((item.context or "").startswith("variant 'off', stimulus 'a'") for item in resolved.diagnostics)


def test_mistakes_of_evals_and_of_the_file_in_one_pass(lab: Lab) -> None:
    lab.eval("stimuli: [{name: a, prompt: p, graders: [{type: nope}]}]\n")
    resolved = lab.read("variants: {a: {}}\n")
    assert [item.code for item in resolved.diagnostics] == ["unknown-grader-type", "vary-required", "variant-count"]


@pytest.mark.parametrize(("vary", "code"), [("", "vary-required"), ("vary: [/scoring]\n", "invalid-vary-path")])
def test_drift_is_unknown_while_vary_is_wrong(lab: Lab, vary: str, code: str) -> None:
    lab.eval(ONE)
    resolved = lab.read(f"{vary}variants: {{a: {{overrides: {{model: m}}}}, b: {{}}}}\n")
    assert [item.code for item in resolved.diagnostics] == [code]


def test_an_eval_that_cannot_be_read(lab: Lab) -> None:
    lab.eval("a: [\n", "p/eval.yaml")
    lab.eval(ONE, "q/eval.yaml")
    resolved = lab.read("matrix: {m: {path: /defaults/model, values: [a, b]}}\n", "x.yaml", "*/eval.yaml")
    assert [(item.file, item.code) for item in resolved.diagnostics] == [("p/eval.yaml", "yaml-syntax")]
    assert [item.eval_file for item in resolved.specs] == ["q/eval.yaml", "q/eval.yaml"]


def test_resolve(lab: Lab) -> None:
    lab.eval(ONE)
    path = lab.experiment("matrix: {m: {path: /defaults/model, values: [a, b]}}\n")
    resolved = resolve_experiment(path, host=lab.work.host)
    assert [item.spec.defaults.model for item in resolved.specs] == ["a", "b"]
    lab.eval("stimuli: []\n")
    with pytest.raises(SpecError, match=r"eval\.yaml:1:10: at least one stimulus is required") as caught:
        resolve_experiment(path, host=lab.work.host)
    assert [item.code for item in caught.value.diagnostics] == ["no-stimuli"]
    path.write_text("[]")
    with pytest.raises(SpecError, match="must be a mapping"):
        resolve_experiment(path, host=lab.work.host)


def test_what_is_known_of_a_file_without_structure(lab: Lab) -> None:
    resolved = read_experiment(lab.work.write("x.yaml", ""), host=lab.work.host)
    assert (resolved.config, resolved.specs) == (None, ())
    assert [item.code for item in resolved.diagnostics] == ["empty-document"]


def test_every_spec_has_its_own_findings(lab: Lab) -> None:
    lab.eval("stimuli: [{name: a, prompt: p}]\n")
    resolved = lab.read("vary: []\nvariants: {a: {}, b: {environment: {skills: [gone]}}}\n")
    assert [[item.code for item in spec.spec.diagnostics] for spec in resolved.specs] == [
        ["no-graders"],
        ["no-graders", "skill-not-found"],
    ]


# Drift


@pytest.mark.parametrize(
    ("vary", "variant", "pointers"),
    [
        ("/defaults/model", "overrides: {runs: 3}", "/defaults/runs"),
        ("/defaults", "overrides: {runs: 3}", None),
        ("/defaults/run", "overrides: {runs: 3}", "/defaults/runs"),
        ("/environment", "agent_environment: {env: {A: '2'}}", "/agent_environment/env/A"),
        (
            "/environment/env/B",
            "environment: {env: {A: '2', B: '3', C: '4'}}",
            "/environment/env/A, /environment/env/C",
        ),
        ("/environment/env", "environment: {env: {A: '2', B: '3', C: '4'}}", None),
        ("/environment/skills", "environment: {commands: [z]}", "/environment/commands"),
        ("/environment/files/0/src", "environment: {files: [{src: g, dest: d}]}", None),
        ("/environment/files/0/src", "environment: {files: [{src: g, dest: e}]}", "/environment/files/0/dest"),
        ("/environment/files/1", "environment: {files: [{src: g, dest: d}]}", "/environment/files/0/src"),
        ("/defaults/executor/config/fixtureDir", "overrides: {executor: {name: picky, config: {fixtureDir: z}}}", None),
        (
            "/defaults/executor/config",
            "overrides: {executor: {name: other, config: {fixtureDir: z}}}",
            "/defaults/executor/name",
        ),
        (
            "/defaults/model",
            "overrides: {runs: 1, timeout: 1m, judge_model: x, reasoning_effort: low, judge_reasoning_effort: low, "
            "max_agent_duration: 1m}",
            "/defaults/runs, /defaults/timeout, /defaults/judge_model, /defaults/reasoning_effort, "
            "/defaults/judge_reasoning_effort and 1 more",
        ),
    ],
)
def test_what_vary_covers(lab: Lab, vary: str, variant: str, pointers: str | None) -> None:
    lab.work.write("f")
    lab.work.write("g")
    lab.eval(
        "environment: {env: {A: '1'}, files: [{src: f, dest: d}]}\ndefaults: {executor: {name: picky, config: {}}}\n"
        + ONE.replace("prompt: p,", "prompt: p, environment: {commands: [own]},")
    )
    resolved = lab.read(f"vary: ['{vary}']\nvariants: {{a: {{}}, b: {{{variant}}}}}\n")
    found = [item.message for item in resolved.diagnostics if item.code == "experiment-drift"]
    expected = [] if pointers is None else [f"variants 'a' and 'b' differ outside vary: {pointers}"]
    assert found == expected


def test_drift_of_a_stimulus_alone(lab: Lab) -> None:
    """A server that a variant repeats reaches the stimuli, even where the root has the same one."""
    lab.eval(
        f"environment: {{mcpServers: {{db: {SERVER}}}}}\n"
        "stimuli:\n  - {name: a, prompt: p, environment: {mcpServers: {db: {type: stdio, command: own}}}, "
        f"{GRADED}}}\n"
    )
    variant = f"b: {{environment: {{mcpServers: {{db: {SERVER}}}}}}}"
    resolved = lab.read(f"vary: [/environment/env]\nvariants: {{a: {{}}, {variant}}}\n")
    assert [item.message for item in resolved.diagnostics] == [
        "variants 'a' and 'b' differ outside vary: /stimuli/0/environment/mcpServers/db/command"
    ]
    lab.clean(f"vary: [/environment/mcpServers]\nvariants: {{a: {{}}, {variant}}}\n")


def test_drift_is_told_of_every_variant(lab: Lab) -> None:
    lab.eval(ONE)
    text = "vary: []\nvariants:\n  a: {}\n  b: {overrides: {model: m}}\n  c: {}\n  d: {environment: {commands: [x]}}\n"
    found = lab.read(text).diagnostics
    assert [(item.line, item.column, item.message) for item in found] == [
        (6, 26, "variants 'a' and 'b' differ outside vary: /defaults/model"),
        (8, 31, "variants 'a' and 'd' differ outside vary: /environment/commands"),
    ]
    assert [note.message for note in found[0].related] == [
        "/defaults/model is absent in variant 'a'",
        "/defaults/model is \"m\" in variant 'b'",
    ]
    assert found[0].context == "eval eval.yaml"


def test_drift_of_the_first_variant_stands_there(lab: Lab) -> None:
    lab.eval(ONE)
    (item,) = lab.read("vary: []\nvariants:\n  a: {overrides: {model: m}}\n  b: {}\n").diagnostics
    assert (item.line, item.column) == (5, 26)


def test_drift_shows_no_secret(lab: Lab) -> None:
    lab.eval("environment: {env: {TOKEN: one-secret}}\n" + ONE)
    server = "{type: http, url: 'http://h', headers: {A: other-secret}}"
    environment = f"{{env: {{TOKEN: two-secret}}, mcpServers: {{m: {server}}}}}"
    text = f"vary: []\nvariants: {{a: {{}}, b: {{environment: {environment}}}}}\n"
    (item,) = lab.read(text).diagnostics
    assert "secret" not in repr(item)
    assert item.related[0].message == "/environment/env/TOKEN is <redacted> in variant 'a'"


def test_an_unused_pointer(lab: Lab) -> None:
    lab.work.skill("r")
    lab.eval("environment: {skills: [r]}\n" + ONE)
    text = "vary: [/environment/skills, /defaults/model]\nvariants: {a: {}, b: {environment: {skills: []}}}\n"
    resolved = lab.read(text)
    assert shown(resolved.diagnostics) == ["x.yaml:3:29 vary-unused /vary/1"]
    assert resolved.diagnostics[0].message == "no variant differs under '/defaults/model'"


def test_a_pointer_that_one_eval_uses(lab: Lab) -> None:
    lab.work.skill("p/r")
    lab.eval("environment: {skills: [r]}\n" + ONE, "p/eval.yaml")
    lab.eval("environment: {skills: []}\n" + ONE, "q/eval.yaml")
    lab.clean(SKILLS, "x.yaml", "*/eval.yaml")


def test_a_pointer_that_only_stimuli_use(lab: Lab) -> None:
    lab.work.skill("s")
    lab.eval(
        f"environment: {{skills: []}}\nstimuli: [{{name: a, prompt: p, environment: {{skills: [s]}}, {GRADED}}}]\n"
    )
    lab.clean(SKILLS)


def test_an_axis_without_effect(lab: Lab) -> None:
    lab.eval(ONE)
    resolved = lab.read(
        "matrix: {m: {path: /defaults/model, values: [a, b]}, n: {path: /defaults/runs, values: [x: 1]}}\n"
    )
    assert shown(resolved.diagnostics) == ["x.yaml:3:64 vary-unused /matrix/n/path"]


# Hashes


@pytest.fixture
def hashes(lab: Lab) -> Any:
    """The eval hash and the config hashes by variant."""

    def of(eval_text: str, text: str = SKILLS, **options: Any) -> tuple[str, dict[str, str]]:
        lab.eval(eval_text)
        resolved = lab.read(text, **options)
        assert not [item for item in resolved.diagnostics if item.level == "error"]
        (digest,) = {item.eval_hash for item in resolved.specs}
        return digest, {item.variant: item.config_hash for item in resolved.specs}

    return of


def test_hashes(hashes: Any) -> None:
    eval_hash, configs = hashes(ONE)
    assert len(eval_hash) == 16
    assert configs["off"] != configs["on"]
    assert configs["on"] == content_hash(
        {"defaults": {}, "environment": {}, "agent_environment": {}, "grading_environment": {}}
    )


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (f"# comment\n\n{ONE}", True),
        (ONE.replace("prompt: p", "prompt: ${P=p}"), True),
        (ONE.replace("prompt: p", "prompt: q"), False),
        (ONE.replace("name: a", "name: b"), False),
        ("defaults: {runs: 1}\n" + ONE, False),
        ("tags: {a: b}\n" + ONE, False),
        ("scoring: {threshold: 1}\n" + ONE, False),
        ("x-mine: 1\n" + ONE, True),
    ],
)
def test_what_the_hash_of_an_eval_depends_on(hashes: Any, text: str, same: bool) -> None:
    assert (hashes(text)[0] == hashes(ONE)[0]) is same


def test_older_spellings_have_the_same_hashes(hashes: Any) -> None:
    assert hashes("config: {timeout: 90}\n" + ONE) == hashes("defaults: {timeout: 90s}\n" + ONE)


def test_rows_count_as_the_stimuli_they_make(hashes: Any, lab: Lab) -> None:
    lab.work.write("d.csv", "q\none\n")
    rows = f"stimuli_from: {{file: d.csv, template: {{name: a, prompt: '${{row.q}}', {GRADED}}}}}\n"
    first = hashes(rows)[0]
    lab.work.write("d.csv", "q\ntwo\n")
    assert hashes(rows)[0] != first


def test_values_of_env_and_headers_do_not_count(hashes: Any) -> None:
    def of(value: str, **options: Any) -> tuple[str, dict[str, str]]:
        server = f"{{type: http, url: 'http://h', headers: {{A: '{value}'}}}}"
        text = f"environment: {{env: {{A: '{value}'}}, mcpServers: {{m: {server}}}}}\n{ONE}"
        found: tuple[str, dict[str, str]] = hashes(text, **options)
        return found

    assert of("1") == of("2") == of("${A}", environ={"A": "3"})


def test_a_variant_changes_its_config_hash_only(hashes: Any) -> None:
    first = hashes(ONE, "matrix: {m: {path: /defaults/model, values: [a, b]}}\n")
    second = hashes(ONE, "matrix: {m: {path: /defaults/model, values: [a, c]}}\n")
    assert first[0] == second[0]
    assert first[1]["m=a"] == second[1]["m=a"]
    assert len({*first[1].values(), *second[1].values()}) == 3


def test_moving_a_project_changes_no_hash(work: Any) -> None:
    def moved(place: str) -> tuple[Any, ...]:
        root = work.root / place
        work.skill(f"{place}/project/s")
        work.skill(f"{place}/outside/t")
        work.write(f"{place}/project/.vally.yaml", "environments: {e: {skills: [s]}}\n")
        work.write(f"{place}/project/evals/p/f")
        work.write(f"{place}/project/evals/p/g.patch", "diff --git a b\n")
        work.write(
            f"{place}/project/evals/p/eval.yaml",
            "environment: e\nagent_environment: {files: [{src: f, dest: f}]}\n"
            f"stimuli: [{{name: a, prompt: p, attachments: [f], golden_patch: {{path: g.patch}}, {GRADED}}}]\n",
        )
        path = work.write(
            f"{place}/project/x.yaml",
            "name: e\nevals: [evals/*/]\nvary: [/environment]\n"
            "variants: {a: {environment: {skills: [../outside/t]}}, b: {environment: {env: {A: '${eval.parent}'}}}}\n",
        )
        resolved = resolve_experiment(path, host=work.host, project=find_project(path.parent, root))
        assert resolved.config is not None
        rows = tuple((item.eval_hash, item.config_hash, *item.shard_keys()) for item in resolved.specs)
        shown_environments = tuple(canonical_json(item.environments) for item in resolved.specs)
        return (resolved.config.experiment_hash, resolved.plan_digest(), rows, shown_environments)

    assert moved("one") == moved("two/deeper")


def test_shard_keys_and_the_digest_of_the_plan(lab: Lab) -> None:
    lab.eval(
        f"defaults: {{runs: 2}}\nstimuli: [{{name: a, prompt: p, {GRADED}}}, {{name: b, prompt: p, {GRADED}}}]\n",
        "p/eval.yaml",
    )
    lab.eval("defaults: {runs: 0}\n" + ONE, "q/eval.yaml")
    resolved = lab.clean("matrix: {m: {path: /defaults/model, values: [x, y]}}\n", "x.yaml", "*/eval.yaml")
    assert [key for item in resolved.specs for key in item.shard_keys()] == [
        f"p/eval.yaml::m={model}::{model}::{stimulus}::trial-{trial}"
        for model in "xy"
        for stimulus in "ab"
        for trial in range(2)
    ]
    rows = [(key, item.eval_hash, item.config_hash) for item in resolved.specs for key in item.shard_keys()]
    assert resolved.plan_digest() == plan_digest(reversed(rows)) == content_hash(sorted(rows))


def test_an_eval_without_a_model(lab: Lab) -> None:
    lab.eval(ONE)
    resolved = lab.clean(SKILLS)
    assert next(resolved.specs[0].shard_keys()) == "eval.yaml::off::default-model::a::trial-0"


def test_what_is_recorded_of_environments(lab: Lab) -> None:
    lab.work.skill("s")
    lab.work.write("f")
    lab.eval(
        "environment: {env: {A: '1'}, files: [{src: f, dest: d}], mcpServers: {m: {type: stdio, command: c, cwd: d}}}\n"
        f"stimuli: [{{name: a, prompt: p, environment: {{commands: [x]}}, {GRADED}}}]\n"
    )
    resolved = lab.clean("vary: [/environment]\nvariants: {a: {}, b: {environment: {skills: [s]}}}\n")
    environment: Mapping[str, Any] = {
        "env": {"A": "<redacted>"},
        "files": [{"src": "f", "dest": "d"}],
        "mcpServers": {"m": {"type": "stdio", "command": "c", "cwd": "d"}},
    }
    first, second = resolved.specs
    assert first.environments == {"environment": environment, "agent_environment": {}, "grading_environment": {}}
    assert second.environments["environment"] == {**environment, "skills": ["s"]}
    assert second.stimulus_environments == {"a": {**environment, "skills": ["s"], "commands": ["x"]}}


# Speed


def test_a_large_plan_is_made_fast(lab: Lab) -> None:
    """Ten thousand trials: twenty variants of ten evals with ten stimuli and five trials each."""
    lab.work.skill("s")
    many = "".join(
        f"  - name: s{number}\n    prompt: do {number}\n    environment: {{commands: [make {number}]}}\n    graders:\n"
        f"      - {{type: file-exists, config: {{path: f{number}.txt}}}}\n"
        f"      - {{type: output-matches, config: {{pattern: 'file {number}'}}}}\n"
        for number in range(10)
    )
    for number in range(10):
        lab.eval(f"defaults: {{runs: 5}}\nenvironment: {{skills: [../s]}}\nstimuli:\n{many}", f"e{number}/eval.yaml")
    variants = "".join(f"  v{number}: {{environment: {{env: {{N: '{number}'}}}}}}\n" for number in range(20))
    text = f"vary: [/environment/env]\nvariants:\n{variants}"

    def planned() -> float:
        start = time.process_time()
        resolved = lab.clean(text, "x.yaml", "e*/eval.yaml")
        assert sum(1 for item in resolved.specs for _ in item.shard_keys()) == 10_000
        assert resolved.plan_digest()
        return time.process_time() - start

    assert min(planned() for _ in range(2)) < 4


def test_each_eval_is_read_once(lab: Lab, make_host: Any) -> None:
    calls = []

    class Counting:
        def __init__(self) -> None:
            calls.append(1)

    lab.eval("stimuli: [{name: a, prompt: p, graders: [{type: counted, config: {n: 1}}]}]\n")
    from vally import Config

    class Counted(Config):
        n: int

        def warnings(self) -> list[str]:
            calls.append("checked")
            return []

    host = make_host(GraderSpec(name="counted", summary="counts", factory=Counting, config=Counted))
    lab.clean("matrix: {m: {path: /defaults/model, values: [a, b, c, d]}}\n", host=host)
    assert calls == ["checked"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("stimuli: [{name: a, prompt: p}]\n", True), ("stimuli_from: {file: x.csv}\n", True), ("", False)],
)
def test_an_eval_in_the_place_of_an_experiment(lab: Lab, text: str, told: bool) -> None:
    (found,) = [item for item in lab.read(text).diagnostics if item.code == "experiment-variants-or-matrix"]
    assert ("vally eval -e FILE" in (found.hint or "")) is told
