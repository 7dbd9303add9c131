"""What `vally schema` takes: whatever loads, older spellings, placeholders and absent values too."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from fences import Fence, all_fences, write_files
from jsonschema import Draft202012Validator
from schemas import errors, found_by_vally, instance, problems, schema

from vally.testing import ProjectBuilder, run_cli

STIMULI = "stimuli: [{name: a, prompt: p}]\n"
STIMULUS = "stimuli:\n  - name: a\n    prompt: p\n"


@pytest.mark.parametrize("kind", ["eval", "config", "experiment", "results"])
def test_the_metaschema_takes_the_schema(kind: str) -> None:
    Draft202012Validator.check_schema(schema(kind))


def by_place(found: list[Fence]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fence", found, ids=str)


@by_place(all_fences("yaml", "eval"))
def test_evals_of_the_documentation(fence: Fence) -> None:
    assert problems("eval", instance(fence.text)) == []


@by_place(all_fences("yaml", "project"))
def test_project_files_of_the_documentation(fence: Fence) -> None:
    assert problems("config", instance(fence.text)) == []


@by_place(all_fences("yaml", "graders"))
def test_graders_of_the_documentation(fence: Fence, tmp_path: Path) -> None:
    write_files(fence.page, tmp_path)
    stimulus = {"name": "s", "prompt": "p", "graders": instance(fence.text)}
    assert problems("eval", {"stimuli": [stimulus]}) == []


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/**/*eval.yaml")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_evals_of_the_examples(path: Path) -> None:
    assert problems("eval", instance(path.read_text())) == []


CHAPTER = {
    "spec": (
        "eval",
        """
name: config-eval
type: capability
defaults: {runs: 3, timeout: 2m, executor: copilot-sdk}
environment:
  skills: [../skills/config-writer]
stimuli:
  - name: writes-json
    prompt: Create app.json with the key "port" set to 8080.
    graders:
      - type: file-exists
        config: {path: app.json}
scoring: {threshold: 0.8}
""",
    ),
    "rows": (
        "eval",
        """
stimuli_from:
  file: cases.csv            # columns: id, question, answer, tier
  where: {tier: [smoke, full]}
  template:
    name: qa-${row.id}
    prompt: ${row.question}
    tags: {tier: "${row.tier}"}
    graders:
      - type: output-contains
        config: {substring: "${row.answer}"}
""",
    ),
    "project": (
        "config",
        """
plugins:                      # lists of plugin specifiers, all optional
  graders: [acme_graders]
  executors: [./tools/http_executor.py]
  backends: []
  reporters: ["acme_reports:register"]
  evalProviders: []
backend: {name: docker, args: {image: acme/box}}
""",
    ),
}


@pytest.mark.parametrize("name", CHAPTER)
def test_the_examples_of_the_format(name: str) -> None:
    kind, text = CHAPTER[name]
    assert problems(kind, instance(text)) == []


OLDER = {
    "config": f"config: {{runs: 2}}\n{STIMULI}",
    "seconds": f"defaults: {{timeout: 120, max_agent_duration: '90'}}\n{STIMULI}",
    "single-texts": f"environment: {{skills: ../s, commands: make}}\nartifacts: {{include: a, exclude: b}}\n{STIMULI}",
    "servers": f"environment: {{mcpServers: {{a: {{command: x}}, b: {{url: 'https://example.invalid'}}}}}}\n{STIMULI}",
    "keys": f"{STIMULUS}    config: {{runs: 1}}\n    runs: 1\n    timeout: 3\n    category: c\n    invariants: [x]\n",
    "more-keys": f"{STIMULUS}    expect_activation: true\n    customized_disallow: []\n    customized_required: [a]\n",
    "turns": "stimuli: [{name: a, turns: [{prompt: one}, two]}]\n",
    "rubric": f"{STIMULUS}    rubric:\n      - Names: the port\n      - [a]\n      - fine\n",
    "rubric-text": f"{STIMULUS}    rubric: fine\n",
    "grader-name": f"{STIMULUS}    graders: [{{type: completed, name: 'Looks: good!'}}]\n",
    "constraints": f"{STIMULUS}    constraints: {{max_duration: 30, expect_tools: bash}}\n",
    "grader-config": f"{STIMULUS}    rubric: [r]\n    graders:\n      - type: prompt\n"
    "        config: {output_delivery: workspace}\n",
}
FOUND_ON_DISK = {"skill-not-found", "nothing-under-test", "unknown-skill-in-constraint", "unknown-environment"}


@pytest.mark.parametrize("name", OLDER)
def test_older_spellings(name: str, tmp_path: Path) -> None:
    found = [item for item in found_by_vally("eval", OLDER[name], tmp_path) if item.code not in FOUND_ON_DISK]
    assert {item.level for item in found} == {"warning"}, found
    assert problems("eval", instance(OLDER[name])) == []


def test_older_keys_are_marked() -> None:
    root, stimulus = schema("eval")["properties"], schema("eval")["$defs"]["stimulus"]["properties"]
    assert root["config"]["deprecated"] is True
    assert all(stimulus[key]["deprecated"] is True for key in ("config", "runs", "timeout", "category"))
    assert schema("experiment")["properties"]["grader_plugins"]["deprecated"] is True


PLACEHOLDERS = {
    "root": """
name: ${N}
type: ${T=regression}
defaults: {runs: '${R}', timeout: '${D=5m}', executor: ${E}}
environment: {git: {type: '${G=clone}', url: u, shallow: '${S}'}, commandTimeout: ${C}}
scoring: {threshold: '${T}', weights: {completed: '${W}'}}
stimuli:
  - name: a
    prompt: p
    constraints: {max_turns: '${M}'}
    graders:
      - {type: '${K=completed}', required: '${Q}', weight: '${W}', turn: '${U}'}
      - {type: token-budget, config: {max: '${B}'}}
""",
    "rows": """
stimuli_from:
  file: a.csv
  template:
    prompt: p
    tags: {area: '${row.tags}'}
    rubric: ${row.rubric}
    constraints: ${row.limits}
    environment: {skills: '${row.skills}', env: '${row.env}'}
    graders:
      - {type: tool-calls, config: {required: '${row.tools}'}}
      - {type: skill-invocation, config: '${row.config}'}
""",
    "set-aside": """
x-base: &b {command: x}
defaults: {x-note: 1}
environment: {x-y: z, mcpServers: {a: {<<: *b, type: stdio, x-z: 1}}}
stimuli: [{name: a, prompt: p, x-mine: [1], graders: [{type: completed, x-note: n}]}]
other_tool: {a: b}
""",
    "nothing": """
name:
description:
defaults:
environment:
tags:
scoring: {weights: {}}
stimuli:
  - {name: a, prompt: p, graders: , rubric: , tags: {a: null}, turns: , environment: {skills: , env: }}
""",
}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_placeholders_and_absent_values(name: str) -> None:
    assert problems("eval", instance(PLACEHOLDERS[name])) == []


EXPERIMENTS = {
    "variants": """
name: e
evals: [eval.yaml]
vary: [/environment/skills, /config/model]
baseline: a
variants:
  a: {environment: {skills: []}}
  b:
    overrides: {model: m, timeout: 30}
    environment: {mcpServers: {db: {timeout: 5s}}, git: {ref: v2}, env: {A: null}}
""",
    "matrix": """
name: e
evals: eval.yaml
matrix:
  skill: {path: /environment/skills, values: [off: [], 'on': ['${eval.parent}']]}
  n: {path: /defaults/runs, values: [1, 2]}
baseline: {skill: off, n: 1}
metadata: {team: x}
other: kept
""",
    "older": """
name: e
evals: [eval.yaml]
vary: [/config/model]
grader_plugins: [a]
executor_plugins: b
eval_plugin: c
variants: {a: {environment: base}, b: {overrides: {model: '${M=x}'}}}
""",
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments(name: str, tmp_path: Path) -> None:
    ProjectBuilder(tmp_path).file("eval.yaml", STIMULI)
    assert errors("experiment", EXPERIMENTS[name], tmp_path) <= FOUND_ON_DISK
    assert problems("experiment", instance(EXPERIMENTS[name])) == []


def test_the_lines_of_a_run(tmp_path: Path) -> None:
    made = ProjectBuilder(tmp_path)
    path = made.eval(
        "one",
        [{"prompt": "hi", "tags": {"a": "b"}, "graders": [{"type": "output-contains", "config": {"substring": "hi"}}]}],
        defaults={"executor": "mock", "runs": 2},
    )
    result = run_cli(["eval", "-e", path], cwd=tmp_path)
    assert len(result.records) == 3
    for record in result.records:
        assert problems("results", record) == []
    broken = {**result.records[0], "status": "fine"}
    assert problems("results", broken)
    del broken["runId"]
    assert problems("results", {**result.records[0], "trajectory": 3})
