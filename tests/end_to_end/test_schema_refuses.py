"""What `vally schema` refuses: every structural fault of the table of diagnostics."""

from __future__ import annotations

from pathlib import Path

import pytest
from schemas import errors, instance, problems

STIMULI = "stimuli: [{name: a, prompt: p}]\n"
FAULTS = {
    "invalid-type": [
        "defaults: {runs: many}\n" + STIMULI,
        "defaults: []\n" + STIMULI,
        "name: 3\n" + STIMULI,
        "environment: {git: {type: clone, url: u, shallow: yes}}\n" + STIMULI,
        "stimuli: {name: a}\n",
        "stimuli: [a]\n",
        "environment: [base]\n" + STIMULI,
        "environment: {env: {A: [b]}}\n" + STIMULI,
        "tags: {area: {a: b}}\n" + STIMULI,
        "metadata: text\n" + STIMULI,
        "stimuli: [{name: a, prompt: p, graders: {type: completed}}]\n",
        "stimuli: [{name: a, prompt: p, rubric: 3}]\n",
    ],
    "invalid-value": [
        "defaults: {runs: 1001}\n" + STIMULI,
        "defaults: {runs: -1}\n" + STIMULI,
        "type: other\n" + STIMULI,
        "scoring: {threshold: 1.5}\n" + STIMULI,
        "scoring: {weights: {completed: -1}}\n" + STIMULI,
        "name: ' '\n" + STIMULI,
        "environment: {commands: ['']}\n" + STIMULI,
        "environment: {git: {type: wortree}}\n" + STIMULI,
        "environment: {files: [{src: a, dest: b, dest_root: home}]}\n" + STIMULI,
        "environment: {env: {'A-B': c}}\n" + STIMULI,
        "environment: {mcpServers: {a: {type: tcp, command: x}}}\n" + STIMULI,
        "tags: {'a=b': c}\n" + STIMULI,
        "stimuli: [{name: a, turns: []}]\n",
        "stimuli: [{name: a, prompt: '  '}]\n",
        "stimuli: [{name: a, prompt: p, simulation: {tool_overrides: [{tool: t, result: 1, error: e}]}}]\n",
    ],
    "missing-key": [
        "stimuli: [{prompt: p}]\n",
        "stimuli: [{name: null, prompt: p}]\n",
        "environment: {git: {url: u}}\n" + STIMULI,
        "environment: {git: {type: clone}}\n" + STIMULI,
        "environment: {mcpServers: {a: {args: [b]}}}\n" + STIMULI,
        "environment: {mcpServers: {a: {type: http}}}\n" + STIMULI,
        "stimuli: [{name: a, prompt: p, graders: [{config: {}}]}]\n",
        "stimuli: [{name: a, prompt: p, golden_command: {args: [x]}}]\n",
        "stimuli: [{name: a, prompt: p, simulation: {tool_overrides: [{tool: t}]}}]\n",
        "stimuli_from: {file: a.csv}\n",
        "defaults: {judge_provider: {type: openai}}\n" + STIMULI,
    ],
    "unknown-key": [
        "runs: 3\n" + STIMULI,
        "threshold: 0.5\n" + STIMULI,
        "defaults: {tmieout: 3s}\n" + STIMULI,
        "scoring: {treshold: 1}\n" + STIMULI,
        "environment: {file: []}\n" + STIMULI,
        "environment: {git: {type: worktree, url: u}}\n" + STIMULI,
        "environment: {mcpServers: {a: {type: stdio, command: x, url: y}}}\n" + STIMULI,
        "grading_environment: {skills: []}\n" + STIMULI,
        "stimuli: [{name: a, prompt: p, constraints: {max_turn: 3}}]\n",
        "stimuli: [{name: a, prompt: p, artifacts: {included: ['*']}}]\n",
    ],
    "unknown-stimulus-field": ["stimuli: [{name: a, prompt: p, grader: []}]\n"],
    "config-and-defaults": ["config: {}\ndefaults: {}\n" + STIMULI],
    "invalid-duration": [
        "defaults: {timeout: 2 m}\n" + STIMULI,
        "defaults: {timeout: 30s2m}\n" + STIMULI,
        "scoring: {timeout: soon}\n" + STIMULI,
        "environment: {commandTimeout: 1.5m30s}\n" + STIMULI,
    ],
    "no-stimuli": ["name: a\n", "stimuli: []\n", "stimuli:\n"],
    "missing-prompt": ["stimuli: [{name: a}]\n", "stimuli: [{name: a, prompt: null}]\n"],
    "prompt-and-turns": ["stimuli: [{name: a, prompt: p, turns: [q]}]\n"],
    "invalid-constraint-value": [
        "stimuli: [{name: a, prompt: p, constraints: {max_turns: -1}}]\n",
        "stimuli: [{name: a, prompt: p, constraints: {max_duration: soon}}]\n",
        "stimuli: [{name: a, prompt: p, constraints: {expect_tools: [3]}}]\n",
    ],
    "golden-conflict": [
        "stimuli: [{name: a, prompt: p, golden_command: make, golden_patch: {inline: 'diff --git a b'}}]\n"
    ],
    "invalid-golden-input": ["stimuli: [{name: a, prompt: p, golden_patch: {path: a, inline: b}}]\n"],
    "invalid-executor": [
        "defaults: {executor: ' '}\n" + STIMULI,
        "defaults: {executor: {config: {}}}\n" + STIMULI,
        "defaults: {executor: null}\n" + STIMULI,
    ],
    "invalid-executor-config": ["defaults: {executor: {name: mock, config: {fixtures: x}}}\n" + STIMULI],
    "environment-file-missing-field": [
        "environment: {files: [a.txt]}\n" + STIMULI,
        "environment: {files: [{src: a}]}\n" + STIMULI,
    ],
    "reserved-env-name": [
        "environment: {env: {vally_X: a}}\n" + STIMULI,
        "environment: {env: {Evaluate_Seed: a}}\n" + STIMULI,
    ],
    "unknown-grader-type": [
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exist, config: {path: a}}]}]\n",
        "graders: [{type: pairwise}]\n" + STIMULI,
    ],
    "invalid-grader-config": [
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists, config: {}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists, config: {path: 3}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists, config: {path: a, pth: b}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists, path: a}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: completed, config: {a: b}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: completed, weight: heavy}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: completed, turn: -1}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: completed, scope: {agents: x}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: file-exists, config: {path: a}, turn: 0}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: token-budget, config: {max: -1}}]}]\n",
        "stimuli: [{name: a, prompt: p, graders: [{type: run-command, config: {command: x, timeout: 5}}]}]\n",
    ],
    "scoring-weights-zero": [
        "scoring: {weights: {completed: 0}}\nstimuli: [{name: a, prompt: p, graders: [{type: completed}]}]\n"
    ],
}


def cases(faults: dict[str, list[str]]) -> pytest.MarkDecorator:
    rows = [
        pytest.param(code, text, id=f"{code}-{index}")
        for code, texts in faults.items()
        for index, text in enumerate(texts)
    ]
    return pytest.mark.parametrize(("code", "text"), rows)


@cases(FAULTS)
def test_faults_of_specs(code: str, text: str, tmp_path: Path) -> None:
    assert code in errors("eval", text, tmp_path), "vally itself takes this"
    assert problems("eval", instance(text))


PROJECT_FAULTS = {
    "invalid-type": [
        "paths: 3\n",
        "suites: {a: {filter: x}}\n",
        "environments: {a: base}\n",
        "plugins: {graders: {a: b}}\n",
        "backend: {name: a, args: {b: 3}}\n",
    ],
    "invalid-value": ["paths: {results: ' '}\n", "environments: {a: {git: {type: wortree}}}\n"],
    "missing-key": ["backend: {args: {}}\n"],
    "unknown-key": [
        "paths: {eval: [a]}\n",
        "suites: {a: {evals: [x], tag: y}}\n",
        "plugins: {grader: [a]}\n",
        "environments: {a: {skill: [b]}}\n",
    ],
    "suite-empty": ["suites: {a: {description: none}}\n"],
}


@cases(PROJECT_FAULTS)
def test_faults_of_project_files(code: str, text: str, tmp_path: Path) -> None:
    assert code in errors("config", text, tmp_path), "vally itself takes this"
    assert problems("config", instance(text))


HEAD = "name: e\nevals: [eval.yaml]\n"
TWO = "variants: {a: {}, b: null}\n"
AXIS = "matrix: {m: {path: /defaults/model, values: [a, b]}}\n"
EXPERIMENT_FAULTS = {
    "missing-key": [
        f"evals: [x]\nvary: [/defaults]\n{TWO}",
        f"name: e\nvary: [/defaults]\n{TWO}",
        f"{HEAD}matrix: {{m: {{values: [a, b]}}}}\n",
    ],
    "invalid-value": [
        f"name: e\nevals: []\nvary: [/defaults]\n{TWO}",
        f"{HEAD}vary: [/defaults]\nexecution: {{workers: 0}}\n{TWO}",
        f"{HEAD}matrix: {{m: {{path: /defaults/model, values: []}}}}\n",
    ],
    "experiment-variants-or-matrix": [HEAD, HEAD + TWO + AXIS],
    "vary-required": [HEAD + TWO],
    "vary-with-matrix": [f"{HEAD}vary: [/defaults]\n{AXIS}"],
    "invalid-vary-path": [f"{HEAD}vary: [/stimuli]\n{TWO}"],
    "variant-count": [f"{HEAD}vary: [/defaults]\nvariants: {{a: {{}}}}\n"],
    "matrix-unlabelled-value": [f"{HEAD}matrix: {{m: {{path: /environment/skills, values: [[a], [b]]}}}}\n"],
    "unknown-key": [
        f"{HEAD}vary: [/defaults]\nvariants: {{a: {{override: {{}}}}, b: {{}}}}\n",
        f"{HEAD}vary: [/defaults]\nruns: 3\n{TWO}",
    ],
    "removed-key": [f"{HEAD}vary: [/defaults]\nfilter: {{a: b}}\n{TWO}"],
    "invalid-duration": [f"{HEAD}vary: [/defaults]\noverrides: {{timeout: soon}}\n{TWO}"],
}


@cases(EXPERIMENT_FAULTS)
def test_faults_of_experiments(code: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text(STIMULI)
    assert code in errors("experiment", text, tmp_path), "vally itself takes this"
    assert problems("experiment", instance(text))
