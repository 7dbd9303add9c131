"""`vally migrate` over files that nobody wrote by hand: it ends, keeps the meaning, and needs no second run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vally import GraderSpec, Project
from vally.testing import plugin_host
from vally_command_scaffold.documents import Shared, SpecFile
from vally_command_scaffold.migration import migrate

# One host for all examples; nothing is written to the directory.
QUICK = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = (
    "config:", "defaults:", "stimuli:", "- name: a", "  prompt: p", "timeout: 30", "turns:", "{prompt: x}", "[", "]",
    "{", "}", "&a", "*a", "<<: *a", "${X=a: b}", "${T=5}", "$${", "# c", "|", ">-", "'", '"', "\\", "\t", "? k", ": v",
    "---", "...", "%YAML 1.2", "\u2028", "\x85", "rubric: [a: b]", "category: x", "!!int 3", "skills: x", "é", "😀",
)  # fmt: skip
WORDS = st.sampled_from(
    ["a", "B c", "x: y", "it's", '"q"', "# no", "${T=5}", "é", "[z]", "yes", "3", "- d", " sp ", "l\nm"]
)
SECONDS = st.one_of(st.integers(1, 500), st.integers(1, 500).map(str), st.just("2m"))
TEXTS = st.one_of(WORDS, st.lists(WORDS, min_size=1, max_size=2))
ENVIRONMENT = st.fixed_dictionaries(
    {},
    optional={
        "commands": TEXTS,
        "commandTimeout": SECONDS,
        "mcpServers": st.dictionaries(
            st.sampled_from(["s", "t"]),
            st.fixed_dictionaries({"command": WORDS}, optional={"timeout": SECONDS}),
            max_size=2,
        ),
    },
)
GRADER = st.fixed_dictionaries(
    {"type": st.just("output-contains"), "config": st.just({"substring": "a"})}, optional={"name": WORDS}
)
STIMULUS = st.fixed_dictionaries(
    {"turns": st.lists(st.one_of(WORDS, st.fixed_dictionaries({"prompt": WORDS})), min_size=1, max_size=3)},
    optional={
        "rubric": st.one_of(WORDS, st.lists(st.one_of(WORDS, st.dictionaries(WORDS, WORDS, min_size=1, max_size=1)))),
        "category": WORDS,
        "runs": st.integers(0, 3),
        "environment": ENVIRONMENT,
        "constraints": st.fixed_dictionaries({}, optional={"max_duration": SECONDS, "expect_tools": TEXTS}),
        "graders": st.lists(GRADER, max_size=3),
    },
)


@st.composite
def specs(draw: st.DrawFn) -> str:
    stimuli = [{"name": f"s{index}", **draw(STIMULUS)} for index in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        # PyYAML writes an anchor and aliases for what occurs twice.
        stimuli.append({**stimuli[0], "name": "again"})
    document = {
        draw(st.sampled_from(["config", "defaults"])): {"timeout": draw(SECONDS), "runs": draw(st.integers(0, 3))},
        "environment": draw(ENVIRONMENT),
        "stimuli": stimuli,
        "scoring": {"weights": draw(st.dictionaries(WORDS, st.integers(1, 3), max_size=2))},
    }
    flow, width = draw(st.sampled_from([True, False, None])), draw(st.integers(20, 120))
    text: str = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, default_flow_style=flow, width=width)
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return f"# A comment\n{text}".replace("\n", ends)


@pytest.fixture
def spec(tmp_path: Path, graders: tuple[GraderSpec, ...]) -> SpecFile:
    return SpecFile(tmp_path / "eval.yaml", Shared(Project(root=tmp_path), plugin_host(*graders), {}))


@QUICK
@given(text=specs())
def test_specs_that_a_program_wrote(spec: SpecFile, text: str) -> None:
    content = text.encode()
    before = spec.read(content)
    made = migrate(spec, content, ["output-contains"])
    after = spec.read(made.after)
    assert after.plan == before.plan
    assert {item.message for item in after.errors} <= {item.message for item in before.errors}
    assert migrate(spec, made.after, ["output-contains"]).after == made.after
    if not before.errors:
        assert not made.left
        assert not [item for item in after.findings if item.code in ("bare-duration", "deprecated-key")]


@QUICK
@given(lines=st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map(" ".join), max_size=8))
def test_text_that_looks_like_yaml(spec: SpecFile, lines: list[str]) -> None:
    content = "\n".join(lines).encode()
    before = spec.read(content)
    made = migrate(spec, content, [])
    assert spec.read(made.after).plan == before.plan


@QUICK
@given(content=st.binary(max_size=200))
def test_bytes(spec: SpecFile, content: bytes) -> None:
    assert migrate(spec, content, []).after == content
