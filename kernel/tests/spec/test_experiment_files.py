"""Experiment files by themselves: keys, variants, matrices, baselines, evals, and every diagnostic about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import Diagnostic, SpecError, find_project, load_experiment_config, read_experiment_config

HEAD = "name: e\nevals: eval.yaml\n"
VARIED = "vary: [/environment/skills]\nvariants: {off: {environment: {skills: []}}, on: {}}\n"
GRADED = "graders: [{type: completed}]"
TWO = "vary: []\nvariants: {a: {}, b: "
MODELS = "matrix: {a: {path: /defaults/model, values: "
EVALS = "name: e\nevals: "


def shown(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    """`line:column CODE pointer` of each; warnings in small letters."""
    return [
        f"{item.line}:{item.column} {item.code.upper() if item.level == 'error' else item.code} {item.pointer}"
        for item in diagnostics
    ]


@pytest.fixture
def read(work: Any) -> Any:
    """Reads an experiment file, by default beside one eval."""
    work.write("eval.yaml", f"stimuli: [{{name: a, prompt: p, {GRADED}}}]\n")

    def reads(text: str, path: str = "x.experiment.yaml", **options: Any) -> Any:
        file = work.write(path, text)
        return read_experiment_config(
            file, **{"project": find_project(work.root, work.root), "host": work.host, **options}
        )

    return reads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + VARIED, []),
        ("", ["1:1 EMPTY-DOCUMENT None"]),
        ("[a]", ["1:1 INVALID-TYPE "]),
        ("a: 1\na: 2", ["2:1 DUPLICATE-KEY /a"]),
        ("evals: eval.yaml\n" + VARIED, ["1:1 MISSING-KEY /name"]),
        ("name: e\n" + VARIED, ["1:1 MISSING-KEY /evals"]),
        ("name: ''\nevals: eval.yaml\n" + VARIED, ["1:7 INVALID-VALUE /name"]),
        (EVALS + "[]\n" + VARIED, ["2:8 INVALID-VALUE /evals"]),
        (EVALS + "[5]\n" + VARIED, ["2:9 INVALID-TYPE /evals/0"]),
        ("name: e\nevals: {}\n" + VARIED, ["2:8 INVALID-TYPE /evals"]),
        (HEAD + VARIED + "description: ''\nversion: 1.0\nmetadata: {a: [1]}\nx-own: 1\n", []),
        (HEAD + VARIED + "metadata: [a]\n", ["5:11 INVALID-TYPE /metadata"]),
        (HEAD + VARIED + "execution: {workers: 3}\n", []),
        (HEAD + VARIED + "execution: {workers: 0}\n", ["5:22 INVALID-VALUE /execution/workers"]),
        (HEAD + VARIED + "execution: {worker: 3}\n", ["5:13 UNKNOWN-KEY /execution/worker"]),
        (HEAD + VARIED + "overrides: {runs: 2, timeout: 5}\n", ["5:31 bare-duration /overrides/timeout"]),
        (HEAD + VARIED + "overrides: {run: 2}\n", ["5:13 UNKNOWN-KEY /overrides/run"]),
        (HEAD + VARIED + "overrides: {executor: ''}\n", ["5:23 INVALID-EXECUTOR /overrides/executor"]),
        (
            HEAD + VARIED + "overrides: {executor: {name: picky, config: {fixtureDir: bad}}}\n",
            ["5:45 INVALID-EXECUTOR-CONFIG /overrides/executor/config"],
        ),
        (
            HEAD + VARIED + "overrides: {judge_provider: {type: tini}}\n",
            ["5:36 INVALID-VALUE /overrides/judge_provider/type"],
        ),
        # Root keys that do not belong here
        (HEAD + VARIED + "varients: 1\n", ["5:1 UNKNOWN-KEY /varients"]),
        (HEAD + VARIED + "runs: 1\n", ["5:1 UNKNOWN-KEY /runs"]),
        (HEAD + VARIED + "threshold: 1\n", ["5:1 UNKNOWN-KEY /threshold"]),
        (HEAD + VARIED + "owner: me\n", ["5:1 foreign-key /owner"]),
        (HEAD + VARIED + "filter: [a]\n", ["5:1 REMOVED-KEY /filter"]),
        (
            HEAD + VARIED + "grader_plugins: [a]\nexecutor_plugins: [a]\neval_plugin: a\n",
            ["5:1 ignored-key /grader_plugins", "6:1 ignored-key /executor_plugins", "7:1 ignored-key /eval_plugin"],
        ),
        # Variants
        (HEAD, ["1:1 EXPERIMENT-VARIANTS-OR-MATRIX "]),
        (
            HEAD + VARIED + "matrix: {a: {path: /defaults/model, values: [x, y]}}\n",
            ["5:1 EXPERIMENT-VARIANTS-OR-MATRIX /matrix"],
        ),
        (HEAD + "variants: {a: {}, b: {}}\n", ["1:1 VARY-REQUIRED /vary"]),
        (HEAD + "vary: ~\nvariants: {a: {}, b: {}}\n", ["1:1 VARY-REQUIRED /vary"]),
        (HEAD + TWO + "~}\n", []),
        (HEAD + "vary: /defaults\nvariants: {a: {}, b: {}}\n", ["3:7 INVALID-TYPE /vary"]),
        (HEAD + "vary: [/scoring]\nvariants: {a: {}, b: {}}\n", ["3:8 INVALID-VARY-PATH /vary/0"]),
        (HEAD + "vary: [defaults/model]\nvariants: {a: {}, b: {}}\n", ["3:8 INVALID-VARY-PATH /vary/0"]),
        (HEAD + "vary: [/defaultsx]\nvariants: {a: {}, b: {}}\n", ["3:8 INVALID-VARY-PATH /vary/0"]),
        (HEAD + "vary: [/defaults/a~2]\nvariants: {a: {}, b: {}}\n", ["3:8 INVALID-VARY-PATH /vary/0"]),
        (HEAD + "vary: [/defaults, /agent_environment/env]\nvariants: {a: {}, b: {}}\n", []),
        (HEAD + "vary: [/config/model]\nvariants: {a: {}, b: {}}\n", ["3:8 deprecated-key /vary/0"]),
        (HEAD + "vary: []\nvariants: {a: {}}\n", ["4:11 VARIANT-COUNT /variants"]),
        (HEAD + "vary: []\nvariants: {}\n", ["4:11 VARIANT-COUNT /variants"]),
        (HEAD + "vary: []\nvariants: [a, b]\n", ["4:11 INVALID-TYPE /variants"]),
        (HEAD + TWO + "x}\n", ["4:22 INVALID-TYPE /variants/b"]),
        (HEAD + "vary: []\nvariants: {a: {}, A: {}}\n", ["4:19 INVALID-VARIANT-NAME /variants/A"]),
        (HEAD + "vary: []\nvariants: {a: {}, '': {}}\n", ["4:19 INVALID-VARIANT-NAME /variants/"]),
        (HEAD + "vary: []\nvariants: {a: {}, ' ': {}}\n", ["4:19 INVALID-VARIANT-NAME /variants/ "]),
        (HEAD + 'vary: []\nvariants: {a: {}, "b\\n": {}}\n', ["4:19 INVALID-VARIANT-NAME /variants/b\n"]),
        (HEAD + f"vary: []\nvariants: {{a: {{}}, {'b' * 120}: {{}}}}\n", []),
        (
            HEAD + f"vary: []\nvariants: {{a: {{}}, {'b' * 121}: {{}}}}\n",
            [f"4:19 INVALID-VARIANT-NAME /variants/{'b' * 121}"],
        ),
        (HEAD + TWO + "{over: {}}}\n", ["4:23 UNKNOWN-KEY /variants/b/over"]),
        (
            HEAD + TWO + "{grading_environment: {}}}\n",
            ["4:23 UNKNOWN-KEY /variants/b/grading_environment"],
        ),
        (HEAD + TWO + "{description: text, overrides: ~, environment: ~}}\n", []),
        (
            HEAD + TWO + "{overrides: {runs: x}}}\n",
            ["4:41 INVALID-TYPE /variants/b/overrides/runs"],
        ),
        (
            HEAD + TWO + "{overrides: {executor: {config: {}}}}}\n",
            ["4:45 INVALID-EXECUTOR /variants/b/overrides/executor"],
        ),
        (
            HEAD + TWO + "{environment: {skils: []}}}\n",
            ["4:37 UNKNOWN-KEY /variants/b/environment/skils"],
        ),
        (
            HEAD + TWO + "{environment: {skills: x}}}\n",
            ["4:45 scalar-for-list /variants/b/environment/skills"],
        ),
        (
            HEAD + TWO + "{agent_environment: {env: {VALLY_A: x}}}}\n",
            ["4:49 RESERVED-ENV-NAME /variants/b/agent_environment/env/VALLY_A"],
        ),
        (
            HEAD + TWO + "{environment: {files: [{src: f, dest: ../f}]}}}\n",
            ["4:60 ENVIRONMENT-FILE-BAD-DEST /variants/b/environment/files/0/dest"],
        ),
        (HEAD + TWO + "{environment: big}}\n", ["4:36 UNKNOWN-ENVIRONMENT /variants/b/environment"]),
        (HEAD + TWO + "{environment: [x]}}\n", ["4:36 INVALID-TYPE /variants/b/environment"]),
        # Matrix
        (HEAD + MODELS + "[x, y]}}\n", []),
        (
            HEAD + "vary: [/defaults]\nmatrix: {a: {path: /defaults/model, values: [x, y]}}\n",
            ["3:1 VARY-WITH-MATRIX /vary"],
        ),
        (HEAD + "matrix: {}\n", ["3:9 VARIANT-COUNT /matrix"]),
        (HEAD + "matrix: [a]\n", ["3:9 INVALID-TYPE /matrix"]),
        (HEAD + "matrix: {a: [x]}\n", ["3:13 INVALID-TYPE /matrix/a"]),
        (HEAD + MODELS + "[x]}}\n", ["3:9 VARIANT-COUNT /matrix"]),
        (HEAD + MODELS + "[]}}\n", ["3:45 INVALID-VALUE /matrix/a/values"]),
        (HEAD + MODELS + "x}}\n", ["3:45 INVALID-TYPE /matrix/a/values"]),
        (HEAD + "matrix: {a: {path: /defaults/model}}\n", ["3:13 MISSING-KEY /matrix/a/values"]),
        (HEAD + "matrix: {a: {values: [x, y]}}\n", ["3:13 MISSING-KEY /matrix/a/path"]),
        (
            HEAD + MODELS + "[x, y], label: z}}\n",
            ["3:53 UNKNOWN-KEY /matrix/a/label"],
        ),
        (HEAD + "matrix: {a: {path: /tags, values: [x, y]}}\n", ["3:20 INVALID-VARY-PATH /matrix/a/path"]),
        (HEAD + "matrix: {a: {path: /config/model, values: [x, y]}}\n", ["3:20 deprecated-key /matrix/a/path"]),
        (
            HEAD + "matrix: {'a,b': {path: /defaults/model, values: [x, y]}}\n",
            ["3:10 INVALID-MATRIX-LABEL /matrix/a,b"],
        ),
        (HEAD + MODELS + "[x, x]}}\n", ["3:49 INVALID-MATRIX-LABEL /matrix/a/values/1"]),
        (HEAD + MODELS + "[x, 'b=c']}}\n", ["3:49 INVALID-MATRIX-LABEL /matrix/a/values/1"]),
        (HEAD + MODELS + "[x, ' ': y]}}\n", ["3:49 INVALID-MATRIX-LABEL /matrix/a/values/1"]),
        (
            HEAD + MODELS + "[openai/gpt-5, llama3:8b]}}\n",
            [],
        ),
        pytest.param(
            HEAD + "matrix: {a: {path: /environment/skills, values: [[x, y], off: []]}}\n",
            ["3:50 MATRIX-UNLABELLED-VALUE /matrix/a/values/0"],
            id="EX-6",
        ),
        (
            HEAD + "matrix: {a: {path: /environment, values: [{a: {}, b: {}}, {}]}}\n",
            ["3:43 MATRIX-UNLABELLED-VALUE /matrix/a/values/0", "3:59 MATRIX-UNLABELLED-VALUE /matrix/a/values/1"],
        ),
        (HEAD + "matrix: {a: {path: /defaults/modle, values: [x, y]}}\n", ["3:20 UNKNOWN-KEY /matrix/a/path"]),
        (HEAD + "matrix: {a: {path: /defaults/runs, values: [1, many]}}\n", ["3:48 INVALID-TYPE /matrix/a/values/1"]),
        (
            HEAD + "matrix: {a: {path: /environment, values: [x: big, y: ~]}}\n",
            ["3:46 UNKNOWN-ENVIRONMENT /matrix/a/values/0/x"],
        ),
        # Baseline
        (HEAD + VARIED + "baseline: off\n", []),
        (HEAD + VARIED + "baseline: Off\n", ["5:11 UNKNOWN-BASELINE /baseline"]),
        (HEAD + VARIED + "baseline: {off: x}\n", ["5:11 INVALID-TYPE /baseline"]),
        (HEAD + VARIED + "baseline: ~\n", []),
        # Evals
        (
            EVALS + "[nothing/*.yaml]\n" + VARIED,
            ["2:8 NO-EVALS-MATCHED /evals", "2:9 pattern-matched-nothing /evals/0"],
        ),
        (EVALS + "[eval.yaml, gone.yaml]\n" + VARIED, ["2:20 pattern-matched-nothing /evals/1"]),
        (EVALS + "[eval.yaml, 'a[']\n" + VARIED, ["2:20 INVALID-GLOB /evals/1"]),
        ("name: e\nevals: gone\n" + VARIED, ["2:8 NO-EVALS-MATCHED /evals", "2:8 pattern-matched-nothing /evals"]),
        # Placeholders
        ("name: ${N}\nevals: eval.yaml\n" + VARIED, ["1:7 UNRESOLVED-PARAMETER /name"]),
        (
            HEAD + TWO + "{environment: {skills: ['${S}']}}}\n",
            ["4:46 UNRESOLVED-PARAMETER /variants/b/environment/skills/0"],
        ),
        (HEAD + "vary: []\nvariants: {a: {description: '${D}'}, b: {environment: {commands: ['echo ${C}']}}}\n", []),
        (
            HEAD + TWO + "{environment: {skills: ['${eval.name}']}}}\n",
            ["4:46 UNKNOWN-VARIABLE /variants/b/environment/skills/0"],
        ),
        (HEAD + TWO + "{environment: {skills: ['$${eval.name}']}}}\n", []),
        (
            HEAD + "vary: []\nvariants: {a: {description: '${eval.name}'}, b: {}}\ndescription: '${eval.name}'\n",
            ["4:29 UNKNOWN-VARIABLE /variants/a/description"],
        ),
        (HEAD + "matrix: {a: {path: /environment/commands, values: [x: ['${C}'], y: []]}}\n", []),
        (HEAD + MODELS + "['${C}', y]}}\n", ["3:46 UNRESOLVED-PARAMETER /matrix/a/values/0"]),
    ],
)
def test_findings(read: Any, text: str, expected: list[str]) -> None:
    assert shown(read(text).diagnostics) == expected


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (VARIED + "filter: [a]\n", "removed-key", "'filter' is no longer supported", "use --eval-filter"),
        (VARIED + "eval_plugin: a\n", "ignored-key", "'eval_plugin' has no effect", "register plugins in .vally.yaml"),
        (VARIED + "runs: 1\n", "unknown-key", "unknown key 'runs' in the experiment file", "move it under overrides"),
        (VARIED + "baseline: onn\n", "unknown-baseline", "baseline 'onn' is not a variant", "did you mean 'on'?"),
        (
            "vary: [/config/model]\nvariants: {a: {}, b: {}}\n",
            "deprecated-key",
            "'/config/model' is deprecated, use '/defaults/model'",
            None,
        ),
        (
            "vary: [/tags]\nvariants: {a: {}, b: {}}\n",
            "invalid-vary-path",
            "'/tags' is not a pointer below /defaults, /environment or /agent_environment",
            None,
        ),
        (
            "matrix: {m: {path: /environment/skills, values: [[], a]}}\n",
            "matrix-unlabelled-value",
            "matrix.m: a list or mapping value needs a label",
            "write {label: value}",
        ),
        (
            "vary: []\nvariants: {a: {}}\n",
            "variant-count",
            "1 variants; at least 2 and at most 256 are allowed",
            None,
        ),
        (
            "vary: []\nvariants: {a: {}, b: {environment: {skils: []}}}\n",
            "unknown-key",
            "unknown key 'skils' in variants.b.environment",
            "did you mean 'skills'?",
        ),
    ],
)
def test_messages(read: Any, text: str, code: str, message: str, hint: str | None) -> None:
    (item,) = [item for item in read(HEAD + text).diagnostics if item.code == code]
    assert (item.message, item.hint) == (message, hint)


def test_contexts_name_variants_and_axes(read: Any) -> None:
    (item,) = read(HEAD + TWO + "{overrides: {run: 1}}}\n").diagnostics
    assert item.context == "variant 'b'"
    (item,) = read(HEAD + "matrix: {m: {path: /defaults/model, values: []}}\n").diagnostics
    assert item.context == "axis 'm'"


SAME_PATH = {
    "texts": ("/defaults/model, values: [a, b]", "/defaults/model, values: [c, d]", True),
    "lists": ("/environment/skills, values: [x: [], y: [a]]", "/environment/skills, values: [z: [], w: [b]]", True),
    "a list and a mapping": (
        "/environment/env, values: [x: {A: '1'}]",
        "/environment/env, values: [y: null, z: {B: '1'}]",
        True,
    ),
    "mappings": ("/environment/env, values: [x: {A: '1'}]", "/environment/env, values: [y: {}, z: {B: '1'}]", False),
    "other paths": ("/defaults/model, values: [a, b]", "/defaults/judge_model, values: [c, d]", False),
}


@pytest.mark.parametrize(("first", "second", "told"), SAME_PATH.values(), ids=SAME_PATH)
def test_axes_that_set_one_value(read: Any, first: str, second: str, told: bool) -> None:
    found = read(HEAD + f"matrix:\n  p: {{path: {first}}}\n  q: {{path: {second}}}\n")
    assert found.config is not None
    items = [item for item in found.diagnostics if item.code == "matrix-same-path"]
    assert [(item.level, item.line, item.column, item.pointer) for item in items] == (
        [("warning", HEAD.count("\n") + 3, 13, "/matrix/q/path")] if told else []
    )
    for item in items:
        assert item.message.startswith("axes 'p' and 'q' both set /")
        assert item.related[0].line == HEAD.count("\n") + 2


COMPOSED, DECOMPOSED = "\u00e9", "e\u0301"
"""One letter in two spellings, as editors and file systems write it."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO.replace("a: {}", f"{COMPOSED}: {{}}").replace("b: ", f"{DECOMPOSED}: {{}}}}"), "INVALID-VARIANT-NAME"),
        (TWO.replace("a: {}", f"{COMPOSED}: {{}}").replace("b: ", "e: {}}"), None),
        (f"{MODELS}[{{{COMPOSED}: a}}, {{{DECOMPOSED}: b}}]}}}}", "INVALID-MATRIX-LABEL"),
    ],
)
def test_names_that_differ_only_in_how_a_letter_is_composed_are_one(read: Any, text: str, expected: str | None) -> None:
    found = [line.split()[1] for line in shown(read(HEAD + text).diagnostics) if line.split()[1].isupper()]
    assert found == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("text", "baseline"),
    [
        (f"vary: []\nvariants: {{{COMPOSED}: {{}}, b: {{}}}}\nbaseline: {DECOMPOSED}", COMPOSED),
        (f"{MODELS}[{COMPOSED}, b]}}}}\nbaseline: a={DECOMPOSED}", f"a={COMPOSED}"),
        (f"{MODELS}[{COMPOSED}, b]}}}}\nbaseline: {{a: {DECOMPOSED}}}", f"a={COMPOSED}"),
    ],
)
def test_a_baseline_is_found_however_its_letters_are_composed(read: Any, text: str, baseline: str) -> None:
    assert read(HEAD + text).config.baseline == baseline


def test_too_many_variants(read: Any) -> None:
    axes = [f"a{axis}: {{path: /defaults/model, values: [{', '.join('abcdefgh')}]}}" for axis in range(6)]
    item = next(item for item in read(HEAD + f"matrix: {{{', '.join(axes)}}}\n").diagnostics if item.level == "error")
    assert item.message == "262144 variants; at least 2 and at most 256 are allowed"
    assert len(read(HEAD + f"matrix: {{{', '.join(axes[:2])}}}\n").config.variants) == 64


# Values


def test_everything_that_a_file_says(read: Any, work: Any) -> None:
    config = read(
        "name: e\ndescription: d\nversion: 2\nevals: [eval.yaml, ./eval.yaml, '*.yaml']\n"
        "vary: [/defaults/model, /environment/env]\nbaseline: a\n"
        "variants:\n  a: {description: first, overrides: {model: m}}\n"
        "  b: {environment: {env: {A: '1'}}, agent_environment: named}\n"
        "overrides: {runs: 2, timeout: 1m}\nexecution: {workers: 4}\nmetadata: {k: [v]}\n"
    ).config
    assert (config.name, config.description, config.version) == ("e", "d", "2")
    assert config.path == work.root / "x.experiment.yaml"
    assert config.display_path == "x.experiment.yaml"
    assert config.evals == ("eval.yaml", "./eval.yaml", "*.yaml")
    assert config.eval_files == (work.root / "eval.yaml", work.root / "x.experiment.yaml")
    assert config.vary == ("/defaults/model", "/environment/env")
    assert config.variant_names == ("a", "b")
    first, second = config.variants
    assert (first.description, first.overrides, first.environment) == ("first", {"model": "m"}, None)
    assert (second.overrides, second.environment) == ({}, {"env": {"A": "1"}})
    assert second.agent_environment == "named"
    assert config.baseline == "a"
    assert config.overrides == {"runs": 2, "timeout": "1m"}
    assert config.workers == 4
    assert config.metadata == {"k": ["v"]}
    assert config.axes == ()


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        pytest.param("{skill: off, model: a}", "skill=off,model=a", id="EX-5"),
        ("{model: a, skill: off}", "skill=off,model=a"),
        ("skill=on,model=b", "skill=on,model=b"),
    ],
)
def test_the_baseline_of_a_matrix(read: Any, baseline: str, expected: str) -> None:
    matrix = (
        "matrix:\n  skill: {path: /environment/skills, values: [off: [], on: [x]]}\n"
        "  model: {path: /defaults/model, values: [a, b]}\n"
    )
    assert read(HEAD + matrix + f"baseline: {baseline}\n").config.baseline == expected


@pytest.mark.parametrize(
    ("baseline", "expected", "message", "hint"),
    [
        (
            "{skill: offf, model: a}",
            "6:19 UNKNOWN-BASELINE /baseline/skill",
            "skill=offf,model=a",
            "did you mean 'off'?",
        ),
        ("{skil: off, model: a}", "6:12 UNKNOWN-BASELINE /baseline/skil", "skil=off", "did you mean 'skill'?"),
        ("{skill: off}", "6:11 UNKNOWN-BASELINE /baseline", "skill=off", None),
        ("skill=off,model=c", "6:11 UNKNOWN-BASELINE /baseline", "skill=off,model=c", "did you mean"),
    ],
)
def test_an_unknown_baseline_of_a_matrix(
    read: Any, baseline: str, expected: str, message: str, hint: str | None
) -> None:
    matrix = (
        "matrix:\n  skill: {path: /environment/skills, values: [off: [], on: [x]]}\n"
        "  model: {path: /defaults/model, values: [a, b]}\n"
    )
    loaded = read(HEAD + matrix + f"baseline: {baseline}\n")
    assert shown(loaded.diagnostics) == [expected]
    (item,) = loaded.diagnostics
    assert item.message == f"baseline '{message}' is not a variant"
    assert (item.hint or "").startswith(hint or "")
    assert bool(item.hint) == bool(hint)
    assert loaded.config.baseline is None


@pytest.mark.parametrize((), [pytest.param(id="EX-4"), pytest.param(id="EX-11")])
def test_variants_of_a_matrix(read: Any) -> None:
    config = read(
        HEAD + "matrix:\n  skill: {path: /environment/skills, values: [off: [], on: [x]]}\n"
        "  model: {path: /defaults/model, values: [a, b]}\n"
    ).config
    assert config.variant_names == (
        "skill=off,model=a",
        "skill=off,model=b",
        "skill=on,model=a",
        "skill=on,model=b",
    )
    assert config.vary == ("/environment/skills", "/defaults/model")
    assert [axis.name for axis in config.axes] == ["skill", "model"]
    assert [(value.label, value.value) for value in config.axes[0].values] == [("off", []), ("on", ["x"])]
    third = config.variants[2]
    assert third.labels == {"skill": "on", "model": "a"}
    assert (third.overrides, third.environment) == ({"model": "a"}, {"skills": ["x"]})


def test_labels_of_scalars_are_their_text(read: Any) -> None:
    config = read(HEAD + "matrix: {runs: {path: /defaults/runs, values: [1, 0x2, three: 3]}}\n").config
    assert [(value.label, value.value) for value in config.axes[0].values] == [("1", 1), ("0x2", 2), ("three", 3)]


def test_a_scalar_equals_the_labelled_value_of_its_text(read: Any) -> None:
    plain, labelled = (
        read(HEAD + f"matrix: {{m: {{path: /defaults/model, values: [{values}]}}}}\n").config
        for values in ("gpt-5, x", "gpt-5: gpt-5, x: x")
    )
    assert plain.axes == labelled.axes
    assert plain.variants == labelled.variants


def test_deep_pointers(read: Any) -> None:
    config = read(
        HEAD + "matrix:\n  a: {path: /defaults/executor/config/t, values: [1, 2]}\n"
        "  b: {path: /environment/env/A~1B, values: [x]}\n  c: {path: /environment/env/C, values: [y]}\n"
    ).config
    assert config.variants[0].overrides == {"executor": {"config": {"t": 1}}}
    assert config.variants[0].environment == {"env": {"A/B": "x", "C": "y"}}


def test_placeholders(read: Any) -> None:
    text = (
        "name: ${N=n}\nevals: ${E=eval}.yaml\nvary: ['/environment/${K=skills}']\n"
        "variants:\n  a: {overrides: {runs: ${RUNS=3}}}\n"
        "  b: {environment: {skills: ['${ROOT}/s'], env: {T: '${T}'}}}\n"
    )
    loaded = read(text, params={"N": "other"}, environ={"ROOT": "/r", "T": "secret", "RUNS": "9", "Z": "z"})
    config = loaded.config
    assert config.name == "other"
    assert config.vary == ("/environment/skills",)
    assert config.variants[0].overrides == {"runs": 3}
    assert config.variants[1].environment == {"skills": ["/r/s"], "env": {"T": "secret"}}
    assert loaded.used_params == {"N", "E", "K", "RUNS", "ROOT", "T"}
    assert loaded.environment_values == {"ROOT": "/r", "T": "secret"}


def test_the_value_of_an_axis_may_use_what_its_path_may(read: Any) -> None:
    text = (
        "matrix:\n  a: {path: /environment/skills, values: [x: ['${ROOT}/s'], y: []]}\n"
        "  b: {path: /environment/commands, values: [z: ['echo ${HOME}']]}\n"
    )
    config = read(HEAD + text, environ={"ROOT": "/r", "HOME": "/h"}).config
    assert config.axes[0].values[0].value == ["/r/s"]
    assert config.axes[1].values[0].value == ["echo ${HOME}"]


def test_evals_are_found_from_the_directory_of_the_experiment(read: Any, work: Any) -> None:
    for name in ("a/eval.yaml", "b/eval.yml", "b/eval.yaml", "agent.x/eval.yaml", "c/eval.yml", "c/other.yaml", "d/f"):
        work.write(f"lab/tests/{name}", "")
    config = read(
        "name: e\nevals: ['tests/!(agent.*)/eval.yaml', tests/b, 'tests/*/', '../eval.yaml', tests/c/other.yaml]\n"
        + VARIED,
        path="lab/experiment.yaml",
    ).config
    assert [path.relative_to(work.root).as_posix() for path in config.eval_files] == [
        "lab/tests/a/eval.yaml",
        "lab/tests/b/eval.yaml",
        "lab/tests/agent.x/eval.yaml",
        "lab/tests/c/eval.yml",
        "eval.yaml",
        "lab/tests/c/other.yaml",
    ]


def test_an_eval_reached_by_two_paths_runs_once(read: Any, work: Any) -> None:
    (work.root / "link.yaml").symlink_to("eval.yaml")
    config = read(EVALS + "[link.yaml, eval.yaml]\n" + VARIED).config
    assert [path.name for path in config.eval_files] == ["link.yaml"]


def test_an_absolute_path_in_a_repository(read: Any, work: Any) -> None:
    (work.root / ".git").mkdir()
    loaded = read(f"name: e\nevals: ['{work.root}/eval.yaml']\n" + VARIED)
    assert shown(loaded.diagnostics) == ["2:9 absolute-path /evals/0"]
    assert loaded.config.eval_files == (work.root / "eval.yaml",)


def test_strict_and_lint(read: Any) -> None:
    text = HEAD + "vary: [/config/model]\nvariants: {'${N}': {}, b: {overrides: {model: '${M}'}}}\n"
    assert [item.level for item in read(text).diagnostics] == ["warning", "error"]
    assert [item.level for item in read(text, strict=True).diagnostics] == ["error", "error"]
    assert [item.level for item in read(text, lint=True).diagnostics] == ["warning", "warning"]


def test_load(work: Any, read: Any) -> None:
    read(HEAD + VARIED)
    config = load_experiment_config(work.root / "x.experiment.yaml", host=work.host)
    assert config.variant_names == ("off", "on")
    read(HEAD)
    with pytest.raises(SpecError, match="exactly one of variants and matrix is required") as caught:
        load_experiment_config(work.root / "x.experiment.yaml", host=work.host)
    assert [item.code for item in caught.value.diagnostics] == ["experiment-variants-or-matrix"]
    with pytest.raises(SpecError, match="cannot read"):
        load_experiment_config(Path("gone.yaml"), host=work.host)


def test_the_project_file_is_looked_up_from_the_experiment(work: Any, read: Any) -> None:
    work.project("environments: {big: {}}\n")
    work.write("lab/eval.yaml", "")
    text = HEAD + "vary: [/environment]\nvariants: {a: {}, b: {environment: big}}\n"
    config = load_experiment_config(work.write("lab/x.yaml", text), host=work.host)
    assert config.display_path == "lab/x.yaml"


@pytest.mark.parametrize(
    "text",
    ["variants: {a: {}, b: {}}\nvary: [/environment]", "matrix: {m: {path: /defaults/runs, values: [1, 2]}}"],
)
def test_the_hash_of_the_file(read: Any, text: str) -> None:
    """Neither its layout nor where it lies matters; what it says does."""
    first = read(f"name: e\nevals: eval.yaml\n{text}\n").config.experiment_hash
    assert len(first) == 16
    assert read(f"# c\nevals:  eval.yaml\nname: 'e'\n{text}\n").config.experiment_hash == first
    assert read(f"name: f\nevals: eval.yaml\n{text}\n").config.experiment_hash != first
    assert read(f"name: ${{N=e}}\nevals: eval.yaml\n{text}\n").config.experiment_hash == first


def test_values_of_env_do_not_enter_the_hash(read: Any) -> None:
    def of(value: str, **options: Any) -> str:
        text = f"vary: [/environment]\nvariants: {{a: {{}}, b: {{environment: {{env: {{A: '{value}'}}}}}}}}\n"
        digest: str = read(HEAD + text, **options).config.experiment_hash
        return digest

    assert of("1") == of("2") == of("${A}", environ={"A": "3"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "vary: []\nvariants: {a: {}, A: {overrides: {modle: x}}, ' ': {environment: none, foo: 1}, b: {}}\n",
            ["invalid-variant-name", "unknown-key", "invalid-variant-name", "unknown-environment", "unknown-key"],
        ),
        (
            "matrix: {'a,b': {path: /scoring, values: [[x]]}, '': {path: /defaults/model, values: []}}\n",
            [
                "invalid-matrix-label",
                "invalid-vary-path",
                "matrix-unlabelled-value",
                "invalid-matrix-label",
                "invalid-value",
            ],
        ),
    ],
)
def test_what_has_a_bad_name_is_checked_all_the_same(read: Any, text: str, expected: list[str]) -> None:
    found = [item.code for item in read(HEAD + text).diagnostics if item.level == "error"]
    assert found == expected
