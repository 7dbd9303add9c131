from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vally import (
    Environment,
    ForeignSpec,
    GraderSpec,
    SpecError,
    load_eval_spec,
    parse_duration,
    resolve_environment,
    resolve_stimulus,
    stimulus_prompts,
    validate_eval_spec,
)
from vally.host import PluginHost
from vally.model.evalspec import StagedFile
from vally.spec import read_foreign_spec

TEXT = """defaults: {executor: {name: picky, config: {fixtureDir: x}}}
scoring: {weights: {output-contains: 1}}
stimuli:
  - name: greets
    turns: [hello, bye]
    graders:
      - {type: output-contains, config: {substring: hi}, turn: 1}
  - {name: other, prompt: p, graders: [{type: output-contains, config: {substring: x}}], constraints: {max_turns: 3}}
"""


def test_parse_duration() -> None:
    assert parse_duration("2m40s") == 160_000


def test_resolve_environment(work: Any) -> None:
    work.write("f")
    work.write("sub/f")
    project = work.project("environments:\n  e:\n    files: [{src: f, dest: f}]\n    env: {A: '${A=a}'}\n")
    named = resolve_environment("e", project=project, params={"A": "b"})
    assert named == Environment(files=(StagedFile(src=work.root / "f", dest="f"),), env={"A": "b"})
    given = {"files": [{"src": "f", "dest": "g"}], "env": {"B": "${B}", "C": "1"}, "commandTimeout": "5s"}
    found = resolve_environment(given, project=project, base_dir=work.root / "sub", environ={"B": "b"})
    assert found == Environment(
        files=(StagedFile(src=work.root / "sub/f", dest="g"),),
        env={"B": "b", "C": "1"},
        command_timeout_ms=5000,
        command_timeout_text="5s",
    )
    with pytest.raises(SpecError, match="no environment named 'f'"):
        resolve_environment("f", project=project)
    with pytest.raises(SpecError, match="unknown key 'fils'"):
        resolve_environment({"fils": []}, project=project)


def test_resolve_stimulus(work: Any) -> None:
    spec = load_eval_spec(work.write("eval.yaml", TEXT), host=work.host)
    stimulus = resolve_stimulus(spec, "greets")
    assert stimulus is spec.stimuli[0]
    assert stimulus_prompts(stimulus) == ("hello", "bye")
    assert stimulus_prompts(resolve_stimulus(spec, "other")) == ("p",)
    with pytest.raises(SpecError, match=r"no stimulus named 'greet' in .*eval\.yaml") as caught:
        resolve_stimulus(spec, "greet")
    assert caught.value.hints == ("did you mean 'greets'?",)


def test_validate_eval_spec(work: Any, records: Any) -> None:
    spec = load_eval_spec(work.write("eval.yaml", TEXT), host=work.host)
    report = validate_eval_spec(spec, registry=work.host)
    assert (report.valid, report.diagnostics) == (True, ())
    fewer = PluginHost.from_objects(*(record for record in records if record.name != "output-contains"))
    report = validate_eval_spec(spec, registry=fewer)
    assert not report.valid
    assert [(item.code, item.line, item.column, item.context) for item in report.diagnostics] == [
        ("invalid-scoring-weight-key", None, None, None),
        ("unknown-grader-type", 7, 9, "stimulus 'greets', grader 1"),
        ("unknown-grader-type", 8, 40, "stimulus 'other', grader 1"),
    ]


def test_validate_against_other_facts(work: Any, records: Any) -> None:
    spec = load_eval_spec(work.write("eval.yaml", TEXT), host=work.host)
    others = [record for record in records if record.name not in ("output-contains", "picky")]
    strict = GraderSpec(name="output-contains", summary="s", factory=object, turn=False)

    class Refusing:
        def validate_config(self, config: Any) -> None:
            raise ValueError("not today")

        async def execute(self, *_: object) -> None: ...

        async def shutdown(self) -> None: ...

    from vally import ExecutorSpec

    executors = PluginHost.from_objects(
        ExecutorSpec(name="picky", summary="s", factory=Refusing, config=_config(records))
    )
    report = validate_eval_spec(spec, registry=PluginHost.from_objects(*others, strict), executor_registry=executors)
    assert [item.message for item in report.diagnostics] == [
        "executor 'picky': not today",
        "Invalid config for output-contains: unknown key 'substring'",
        "Invalid config for output-contains: 'turn' is not supported",
        "Invalid config for output-contains: unknown key 'substring'",
    ]


def _config(records: Any) -> Any:
    return next(record.config for record in records if record.name == "picky")


def foreign(spec: Any, base: Any, **fields: Any) -> ForeignSpec:
    return ForeignSpec(spec=spec, base_dir=base, **fields)


def test_foreign_specs(work: Any, make_host: Callable[..., Any]) -> None:
    work.write("data/f")
    path = work.write("foreign.toml", "")
    given = {
        "name": "n",
        "stimuli": [
            {
                "name": "a",
                "prompt": "${X}",
                "graders": [{"type": "completed", "weight": 0.5}, {"type": "complete"}],
                "environment": {"files": [{"src": "f", "dest": "f"}]},
                "tags": {"n": 5, "b": True},
            }
        ],
    }
    positions = {"/stimuli/0": (7, 3), "/stimuli/0/graders/1/type": (9, 5), "/stimuli/0/tags": (11, 1)}
    loaded = read_foreign_spec(foreign(given, work.root / "data", positions=positions), path, host=work.host)
    assert loaded.spec is not None
    stimulus = loaded.spec.stimuli[0]
    assert stimulus.prompt == "${X}"
    assert stimulus.environment.files[0].src == work.root / "data/f"
    assert stimulus.graders[0].weight == 0.5
    assert loaded.spec.path == path
    assert [(item.code, item.line, item.column) for item in loaded.diagnostics] == [
        ("unknown-grader-type", 9, 5),
        ("coerced-scalar", 11, 1),
        ("coerced-scalar", 11, 1),
    ]


def test_a_foreign_spec_must_be_json(work: Any) -> None:
    with pytest.raises(TypeError, match="object is not JSON"):
        read_foreign_spec(foreign({"name": object()}, work.root), work.root / "x", host=work.host)
