from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally.model.evalspec import Defaults, ExecutorChoice, ProviderConfig

STIMULI = "stimuli:\n  - {name: a, prompt: p, graders: [{type: completed}]}\n"


def root(work: Any, line: str, **options: Any) -> Any:
    """Load a spec with one right stimulus and these root lines from line 3 on."""
    return work(f"{STIMULI}{line}\n", **options)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("name: 5", ["3:7 INVALID-TYPE"]),
        ("name: ''", ["3:7 INVALID-VALUE"]),
        ("description: ''", []),
        ("version: [1]", ["3:10 INVALID-TYPE"]),
        ("type: capability", []),
        ("type: quality", ["3:7 INVALID-VALUE"]),
        ("type: regression", ["3:7 regression-without-baseline"]),
        ("type: regression\nscoring: {threshold: 0}", []),
        ("metadata: [a]", ["3:11 INVALID-TYPE"]),
        ("metadata: {a: [1, {b: ~}]}", []),
        ("scorring: {}", ["3:1 UNKNOWN-KEY"]),
        ("timeout: 5m", ["3:1 UNKNOWN-KEY"]),
        ("weights: {}", ["3:1 UNKNOWN-KEY"]),
        ("area: x", ["3:1 foreign-key"]),
        ("x-area: x", []),
        ("config: {runs: 2}", ["3:1 deprecated-key"]),
        ("config: {runs: 2}\ndefaults: {runs: 3}", ["3:1 CONFIG-AND-DEFAULTS"]),
        ("config: ~", ["3:1 deprecated-key"]),
        ("artifacts: {exclude: [x]}", ["3:22 artifacts-exclude-only"]),
        ("graders: {}", ["3:10 INVALID-TYPE"]),
        ("graders: [{}]", ["3:11 MISSING-KEY"]),
        ("stimuli_from: x", ["3:15 INVALID-TYPE"]),
        ("defaults: [runs]", ["3:11 INVALID-TYPE"]),
    ],
)
def test_root_keys(work: Any, line: str, expected: list[str]) -> None:
    assert root(work, line).found == expected


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("scorring: {}", "did you mean 'scoring'?"),
        ("timeout: 5m", "move it under defaults"),
        ("executor: x", "move it under defaults"),
        ("threshold: 1", "move it under scoring"),
    ],
)
def test_hints_of_unknown_keys(work: Any, line: str, hint: str) -> None:
    item = root(work, line).only("unknown-key")
    assert item.hint == hint
    assert item.message == f"unknown key '{line.split(':')[0]}' in the eval spec"


def test_a_key_of_the_project_file_is_said_to_be_one(work: Any) -> None:
    item = root(work, "backend: 5").only("foreign-key")
    assert item.hint == "it is a key of the project file '.vally.yaml'"


def test_a_golden_input_is_a_baseline(work: Any) -> None:
    text = f"{STIMULI}  - {{name: b, prompt: p, graders: [{{type: completed}}], golden_command: make}}\n"
    assert work(f"{text}type: regression\n").found == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eval.yaml", "eval"),
        ("evals/smoke/eval.yaml", "evals/smoke"),
        ("evals/smoke/eval.yml", "evals/smoke"),
        ("evals/x.eval.yaml", "evals/x.eval"),
        ("evals/my-eval.yaml", "evals/my-eval"),
    ],
)
def test_default_names(work: Any, name: str, expected: str) -> None:
    spec = work(STIMULI, name=name).clean
    assert (spec.name, spec.display_path) == (expected, name)
    assert spec.path == work.root / name


# Defaults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{runs: 0}", []),
        ("{runs: 1000}", []),
        ("{runs: 1001}", ["3:18 INVALID-VALUE"]),
        ("{runs: -1}", ["3:18 INVALID-VALUE"]),
        ("{runs: 1.0}", ["3:18 INVALID-TYPE"]),
        ("{runs: '3'}", ["3:18 INVALID-TYPE"]),
        ("{runs: ~}", []),
        ("{timeout: 0s}", ["3:21 INVALID-DURATION"]),
        pytest.param("{timeout: 0.4ms}", ["3:21 INVALID-DURATION"], id="DU-7"),
        pytest.param("{timeout: 5}", ["3:21 bare-duration"], id="DU-6"),
        ("{timeout: '5'}", ["3:21 bare-duration"]),
        ("{timeout: 1.5}", ["3:21 bare-duration"]),
        ("{timeout: '1.5'}", ["3:21 INVALID-DURATION"]),
        ("{timeout: -5}", ["3:21 INVALID-DURATION"]),
        ("{timeout: 169h}", ["3:21 INVALID-DURATION"]),
        ("{timeout: 700000}", ["3:21 INVALID-DURATION"]),
        ("{timeout: 1e3}", ["3:21 bare-duration"]),
        ("{timeout: .inf}", ["3:21 INVALID-DURATION"]),
        ("{timeout: true}", ["3:21 INVALID-DURATION"]),
        ("{timeout: [5]}", ["3:21 INVALID-TYPE"]),
        ("{timeout: 5 s}", ["3:21 INVALID-DURATION"]),
        ("{max_agent_duration: 5m}", []),
        ("{model: ''}", ["3:19 INVALID-VALUE"]),
        ("{model: 5}", ["3:19 INVALID-TYPE"]),
        ("{reasoning_effort: warp}", []),
        ("{reasoning_effort: ' '}", ["3:30 INVALID-VALUE"]),
        ("{judge_model: m, judge_reasoning_effort: low}", []),
        ("{modle: m}", ["3:12 UNKNOWN-KEY"]),
        ("{workers: 3}", ["3:12 UNKNOWN-KEY"]),
    ],
)
def test_defaults(work: Any, text: str, expected: list[str]) -> None:
    assert root(work, f"defaults: {text}").found == expected


def test_messages_about_durations(work: Any) -> None:
    found = root(work, "defaults: {timeout: 5, max_agent_duration: 5 s}").diagnostics
    assert [item.message for item in found] == [
        "defaults.timeout: 5 has no unit and is read as seconds; write 5s",
        "defaults.max_agent_duration: '5 s' is not a duration (examples: 30s, 5m, 2m40s)",
    ]


def test_default_values(work: Any) -> None:
    text = "{runs: 3, timeout: 90, max_agent_duration: 1m, model: m, reasoning_effort: low, judge_model: j}"
    found = root(work, f"defaults: {text}")
    assert found.spec.defaults == Defaults(
        runs=3, timeout_ms=90_000, max_agent_duration_ms=60_000, model="m", reasoning_effort="low", judge_model="j"
    )
    assert found.spec.document["defaults"] == {
        "runs": 3,
        "timeout": "90s",
        "max_agent_duration": "1m",
        "model": "m",
        "reasoning_effort": "low",
        "judge_model": "j",
    }
    assert root(work, "name: n").clean.defaults == Defaults()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine", []),
        ("''", ["3:22 INVALID-EXECUTOR"]),
        ("~", ["3:22 INVALID-EXECUTOR"]),
        ("5", ["3:22 INVALID-EXECUTOR"]),
        ("[mine]", ["3:22 INVALID-EXECUTOR"]),
        ("{}", ["3:22 INVALID-EXECUTOR"]),
        ("{config: {}}", ["3:22 INVALID-EXECUTOR"]),
        ("{name: ''}", ["3:29 INVALID-EXECUTOR"]),
        ("{name: 5}", ["3:29 INVALID-TYPE"]),
        ("{name: mine, confg: {}}", ["3:35 UNKNOWN-KEY"]),
        ("{name: mine, config: [x]}", ["3:43 INVALID-TYPE"]),
        ("{name: mine, config: ~}", []),
        ("{name: mine, config: {any: [thing]}}", []),
        ("{name: mine, config: {apiKey: abc}}", ["3:52 SECRET-IN-SPEC"]),
        ("{name: mine, config: {provider: {bearerToken: abc}}}", ["3:68 SECRET-IN-SPEC"]),
        ("{name: mine, config: {provider: {headers: {X-Token: abc}}}}", ["3:74 SECRET-IN-SPEC"]),
        ("{name: mine, config: {provider: {headers: {X-Other: abc}}}}", []),
        ("{name: mine, config: {apiKey: '${KEY=k}'}}", []),
        ("{name: picky}", []),
        ("{name: picky, config: {fixtureDir: x}}", []),
        ("{name: picky, config: {fixtureDir: 5}}", ["3:57 INVALID-EXECUTOR-CONFIG"]),
        ("{name: picky, config: {fixturDir: x}}", ["3:45 INVALID-EXECUTOR-CONFIG"]),
        ("{name: picky, config: {fixtureDir: bad}}", ["3:44 INVALID-EXECUTOR-CONFIG"]),
    ],
)
def test_executors(work: Any, text: str, expected: list[str]) -> None:
    assert root(work, f"defaults: {{executor: {text}}}").found == expected


def test_executor_values(work: Any) -> None:
    found = root(work, "defaults: {executor: {name: mine, config: {a: {b: [1]}}}}").clean
    assert found.defaults.executor == ExecutorChoice(name="mine", config={"a": {"b": [1]}})
    assert root(work, "defaults: {executor: mine}").clean.defaults.executor == ExecutorChoice(name="mine")


def test_messages_about_executors(work: Any) -> None:
    item = root(work, "defaults: {executor: {name: picky, config: {fixtureDir: bad}}}").diagnostics[0]
    assert item.message == "executor 'picky': fixtureDir must not be bad"
    item = root(work, "defaults: {executor: ''}").diagnostics[0]
    assert item.message == "defaults.executor must be a name or {name, config}"
    item = root(work, "defaults: {executor: {name: mine, config: {apiKey: abc}}}").diagnostics[0]
    assert item.message == (
        "defaults.executor.config.apiKey must not hold a secret; name an environment variable instead"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{type: openai, baseUrl: 'https://h/v1'}", []),
        ("{type: azure, baseUrl: 'http://h', apiVersion: v, apiKeyEnv: K, model: m, wireApi: responses}", []),
        ("{type: anthropic, baseUrl: 'https://h', bearerTokenEnv: T, answer: schema, headers: {A: b}}", []),
        ("openai", ["3:28 INVALID-TYPE"]),
        ("{}", ["3:28 MISSING-KEY"]),
        ("{type: opnai, baseUrl: 'https://h'}", ["3:35 INVALID-VALUE"]),
        ("{type: openai}", ["3:28 MISSING-KEY"]),
        ("{type: openai, baseUrl: 'ftp://h'}", ["3:52 INVALID-VALUE"]),
        ("{type: openai, baseUrl: 'https://u:p@h'}", ["3:52 SECRET-IN-SPEC"]),
        ("{type: openai, baseUrl: 'https://h', apiKeyEnv: A, bearerTokenEnv: B}", ["3:95 INVALID-VALUE"]),
        ("{type: openai, baseUrl: 'https://h', apiKeyEnv: a-b}", ["3:76 INVALID-VALUE"]),
        ("{type: openai, baseUrl: 'https://h', apiKey: abc}", ["3:73 SECRET-IN-SPEC"]),
        ("{type: openai, baseUrl: 'https://h', password: '${P=x}'}", ["3:65 UNKNOWN-KEY"]),
        ("{type: openai, baseUrl: 'https://h', headers: {Authorization: abc}}", ["3:90 SECRET-IN-SPEC"]),
        ("{type: openai, baseUrl: 'https://h', headers: {Authorization: '${A=b}'}}", []),
        ("{type: openai, baseUrl: 'https://h', wireApi: soap}", ["3:74 INVALID-VALUE"]),
        ("{type: openai, baseUrl: 'https://h', maxPromptTokens: 5}", ["3:65 UNKNOWN-KEY"]),
        ("{type: tiny}", []),
        ("{type: tiny, threads: 2}", []),
        ("{type: tiny, threads: x}", ["3:50 INVALID-VALUE"]),
        ("{type: tiny, thread: 2}", ["3:41 UNKNOWN-KEY"]),
    ],
)
def test_judge_providers(work: Any, text: str, expected: list[str]) -> None:
    assert root(work, f"defaults: {{judge_provider: {text}}}").found == expected


def test_provider_values(work: Any) -> None:
    text = (
        "{type: azure, baseUrl: 'http://h', apiVersion: v, apiKeyEnv: K, model: m, wireApi: responses, headers: {A: b}}"
    )
    assert root(work, f"defaults: {{judge_provider: {text}}}").clean.defaults.judge_provider == ProviderConfig(
        type="azure",
        base_url="http://h",
        api_version="v",
        api_key_env="K",
        model="m",
        wire_api="responses",
        headers={"A": "b"},
    )
    tiny = root(work, "defaults: {judge_provider: {type: tiny, threads: 2}}").clean.defaults.judge_provider
    assert tiny == ProviderConfig(type="tiny", options={"threads": 2})


def test_keys_of_plugins_are_suggested(work: Any) -> None:
    item = root(work, "defaults: {executor: {name: picky, config: {fixturDir: x}}}").only("invalid-executor-config")
    assert item.hint == "did you mean 'fixtureDir'?"
    stimuli = "stimuli: [{name: s, prompt: p, graders: [{type: output-contains, config: {substrng: x}}]}]\n"
    hints = [item.hint for item in work(f"name: e\n{stimuli}").diagnostics if item.code == "invalid-grader-config"]
    assert "did you mean 'substring'?" in hints


def test_what_is_wrong_with_options_of_a_judge_is_told_in_words(work: Any) -> None:
    unknown = root(work, "defaults: {judge_provider: {type: tiny, thread: 2}}").only("unknown-key")
    assert unknown.message == "unknown key 'thread' in defaults.judge_provider"
    assert unknown.hint == "did you mean 'threads'?"
    wrong = root(work, "defaults: {judge_provider: {type: tiny, threads: x}}").only("invalid-value")
    assert "expected a value that judge 'small' takes ('threads' must be an integer)" in wrong.message


def test_an_unknown_provider_type_lists_those_that_are_served(work: Any) -> None:
    item = root(work, "defaults: {judge_provider: {type: tini}}").only("invalid-value")
    assert item.message == (
        "defaults.judge_provider.type: 'tini' is not allowed; expected openai, azure, anthropic or tiny"
    )
    assert item.hint == "did you mean 'tiny'?"


# The file as a whole


def test_the_document_of_a_spec(work: Any) -> None:
    work.skill("s")
    work.write("f")
    work.project("environments: {e: {skills: [s]}}\n")
    spec = work(
        "name: n\ntype: capability\nversion: 2\ndefaults: {runs: 2}\nenvironment: e\ntags: {a: [x, y]}\n"
        "metadata: {k: 1}\n"
        "graders: [{type: completed}]\nscoring: {threshold: 0.5}\n"
        "stimuli:\n  - name: s1\n    turns: [a, b]\n    environment: {files: [{src: f, dest: f}], env: {A: b}}\n"
        "    rubric: [r]\n    graders: [{type: prompt, turn: 1}]\n    constraints: {max_turns: 2}\n"
    ).clean
    assert spec.document == {
        "name": "n",
        "type": "capability",
        "version": "2",
        "defaults": {"runs": 2},
        "environment": {"skills": [str(work.root / "s")]},
        "scoring": {"threshold": 0.5},
        "tags": {"a": ["x", "y"]},
        "metadata": {"k": 1},
        "stimuli": [
            {
                "name": "s1",
                "prompt": "a\n\nb",
                "turns": ["a", "b"],
                "environment": {
                    "skills": [str(work.root / "s")],
                    "files": [{"src": str(work.root / "f"), "dest": "f"}],
                    "env": {"A": "b"},
                },
                "tags": {"a": ["x", "y"]},
                "graders": [{"type": "completed"}, {"type": "prompt", "turn": 1}],
                "rubric": ["r"],
                "constraints": {"max_turns": 2},
            }
        ],
    }
    assert spec.document["stimuli"][0] == spec.stimuli[0].document


def test_strict(work: Any) -> None:
    found = root(work, "area: x\ngraders: [{type: output-matches, config: {pattern: '.*'}}]", strict=True)
    assert [(item.code, item.level) for item in found.diagnostics] == [
        ("foreign-key", "error"),
        ("suspicious-pattern", "info"),
    ]


def test_severities() -> None:
    from vally import Diagnostic
    from vally.spec import adjust

    items = [Diagnostic(code=code, level="warning", message="m") for code in ("a", "b", "c")]
    adjusted = adjust(items, strict=True, severities={"a": "off", "b": "info"})
    assert [(item.code, item.level) for item in adjusted] == [("b", "info"), ("c", "error")]


def test_diagnostics_as_text(work: Any) -> None:
    from vally.spec import format_diagnostic

    item = root(work, "scorring: {}").diagnostics[0]
    assert format_diagnostic(item) == (
        "error: eval.yaml:3:1: unknown key 'scorring' in the eval spec [unknown-key]\n  did you mean 'scoring'?"
    )
    twice = root(work, "name: a\nname: b").diagnostics[0]
    assert format_diagnostic(twice).splitlines()[1:] == ["  eval.yaml:3:1: first here"]


def test_quoted_values_are_cut_and_on_one_line(work: Any) -> None:
    item = root(work, f'type: "{"x" * 50}\\n\\e[31m{"y" * 50}"').diagnostics[0]
    assert "\n" not in item.message
    assert "\x1b" not in item.message
    assert item.message.startswith(f"type: '{'x' * 50} ")
    assert "…" in item.message
    assert len(item.message) < 160


def test_load_eval_spec(work: Any, make_host: Callable[..., Any]) -> None:
    from vally import SpecError, load_eval_spec

    path = work.write("ok.yaml", f"{STIMULI}area: x\n")
    spec = load_eval_spec(path, host=work.host)
    assert [item.code for item in spec.diagnostics] == ["foreign-key"]
    broken = work.write("bad.yaml", "stimuli: []\nscorring: {}\n")
    with pytest.raises(
        SpecError, match=r"bad\.yaml:1:10: at least one stimulus is required \[no-stimuli\] \(and 1 more\)"
    ) as caught:
        load_eval_spec(str(broken), host=work.host)
    assert [item.code for item in caught.value.diagnostics] == ["no-stimuli", "unknown-key"]


def test_files_of_a_judge_lie_beside_the_eval(work: Any) -> None:
    path = work.write("models/small.gguf")
    text = "defaults: {judge_provider: {type: tiny, path: models/small.gguf}}"
    assert root(work, text).clean.defaults.judge_provider == ProviderConfig(
        type="tiny", options={"path": path.as_posix()}
    )
    assert root(work, text.replace("small", "large")).found == ["3:47 INVALID-VALUE"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stimuli_from: []\n", ["1:15 NO-STIMULI"]),
        ("stimuli: []\nstimuli_from: []\n", ["1:10 NO-STIMULI"]),
        ("stimuli_from: ~\n", ["1:1 NO-STIMULI"]),
    ],
)
def test_rows_that_are_none(work: Any, text: str, expected: list[str]) -> None:
    assert work(text).found == expected


def test_rows_that_cannot_be_read_are_no_missing_stimuli(work: Any) -> None:
    assert work("stimuli_from: {file: none.csv, template: {prompt: p}}\n").codes == ["file-not-found"]


def test_a_number_is_quoted_as_it_is_written(work: Any) -> None:
    stimuli = "stimuli: [{name: a, prompt: p, graders: [{type: completed}]}]\n"
    item = work(f"{stimuli}defaults: {{runs: 3.0}}\n").only("invalid-type")
    assert item.message == "defaults.runs must be an integer, got 3.0"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("evals: [a.yaml]\nvariants: {a: {}, b: {}}\n", "vally experiment run FILE"),
        ("evals: [a.yaml]\nmatrix: {a: {path: /defaults/model, values: [x, y]}}\n", "vally experiment run FILE"),
        ("name: x\n", None),
    ],
)
def test_an_experiment_in_the_place_of_an_eval(work: Any, text: str, hint: str | None) -> None:
    (found,) = [item for item in work(text).diagnostics if item.code == "no-stimuli"]
    assert (hint in (found.hint or "")) if hint else found.hint is None


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("0", "'0s' is not longer than zero"),
        ("0.4ms", "'0.4ms' is not longer than zero"),
        ("169h", "'169h' is longer than 168h"),
        ("5S", None),
    ],
)
def test_a_duration_that_is_one_but_not_allowed_says_why(work: Any, written: str, hint: str | None) -> None:
    found = work(f"defaults: {{timeout: {written}}}\nstimuli: [{{name: a, prompt: p, graders: []}}]\n")
    assert found.only("invalid-duration").hint == hint
