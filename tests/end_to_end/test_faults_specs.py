"""Broken specs of every kind: each problem has a place and a code, and none is a traceback."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vally.testing import run_cli

pytestmark = pytest.mark.heavy

PLACED = re.compile(r"(error|warning): eval\.yaml:[1-9][0-9]*:[1-9][0-9]*: .+ \[[a-z0-9-]+\]")
WHOLE: dict[str, Any] = {
    "name": "whole",
    "version": "1",
    "description": "everything a spec can say",
    "tags": {"area": "x", "tier": ["a", "b"]},
    "defaults": {
        "executor": {"name": "mock", "config": {"fixtureDir": "fixtures"}},
        "runs": 2,
        "timeout": "30s",
        "judge_model": "m",
    },
    "scoring": {"threshold": 0.5, "weights": {"completed": 2}, "timeout": "10s"},
    "environment": {
        "files": [{"src": "a.txt", "dest": "b.txt"}],
        "commands": ["true"],
        "env": {"A": "b"},
    },
    "graders": [{"type": "completed"}, {"type": "output-contains", "name": "n", "config": {"substring": "x"}}],
    "stimuli": [
        {
            "name": "one",
            "prompt": "p",
            "tags": {"t": "u"},
            "graders": [{"type": "output-matches", "config": {"pattern": "a+"}, "weight": 2, "required": True}],
            "constraints": {"max_turns": 3},
            "environment": {"files": [{"src": "a.txt", "dest": "c.txt"}]},
        },
        {
            "name": "two",
            "turns": ["a", "b"],
            "graders": [{"type": "output-not-contains", "turn": 1, "config": {"substring": "y"}}],
        },
    ],
}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["", "..", "/", "*", "${X}", "{{x}}", "1s", "-1s", "0", "(", "[", "copilot-sdk", "mock", "\u2028"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
)
QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


PLACES = places(WHOLE)[1:]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """The whole spec with one to three places replaced, removed, renamed or added to."""
    spec = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from(PLACES))
        holder = spec
        try:
            for part in path:
                holder = holder[part]
            holder[key]
        except (KeyError, IndexError, TypeError):
            continue
        action = draw(st.sampled_from(["replace", "remove", "add", "repeat"]))
        if action == "replace" or not isinstance(holder, dict):
            holder[key] = draw(JUNK)
        elif action == "remove":
            del holder[key]
        elif action == "add":
            holder[draw(st.text(min_size=1, max_size=8))] = draw(JUNK)
        else:
            holder[f"{key}s"] = holder[key]
    return spec


def check(text: str | bytes) -> int:
    """Dry-run a spec; every finding has a place and a code."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "eval.yaml").write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        (root / "a.txt").write_text("a")
        (root / "fixtures").mkdir()
        result = run_cli(["eval", "-e", "eval.yaml", "--dry-run"], cwd=root)
        assert sorted(path.name for path in root.iterdir()) == ["a.txt", "eval.yaml", "fixtures"]
    told = result.stdout + result.stderr
    assert "Traceback" not in told
    assert "internal error" not in told
    assert result.exit_code in (0, 1)
    found = [line for line in result.stderr.splitlines() if line.startswith(("error:", "warning:"))]
    # What is installed beside the program is not the matter of a spec.
    findings = [line for line in found if not line.startswith("warning: plugin ")]
    for line in findings:
        assert PLACED.fullmatch(line), line
    assert (result.exit_code == 1) == any(line.startswith("error:") for line in findings), told
    return result.exit_code


def test_the_whole_spec_is_valid() -> None:
    assert check(json.dumps(WHOLE)) == 0


@QUICK
@given(mutated())
def test_no_mutation_of_a_spec_is_a_traceback(spec: Any) -> None:
    check(json.dumps(spec, ensure_ascii=False))


@QUICK
@given(st.data())
def test_no_damage_to_the_text_of_a_spec_is_a_traceback(data: st.DataObject) -> None:
    text = json.dumps(WHOLE, indent=1)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    piece = data.draw(
        st.one_of(st.text(max_size=6), st.sampled_from(["\t", "&a", "*a", "!!x", "<<:", "---\n", "\x00"]))
    )
    check(text[:start] + piece + text[end:])


@QUICK
@given(st.binary(max_size=40))
def test_no_bytes_are_a_traceback(content: bytes) -> None:
    check(content)


BOMBS = {
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{chr(98 + index)}: &{chr(98 + index)} [{', '.join([f'*{chr(97 + index)}'] * 9)}]\n" for index in range(12)
    ),
    "deep-flow": "a: " + "[" * 20_000,
    "deep-block": "\n".join(" " * depth + "a:" for depth in range(1500)),
    "own-alias": "name: &a [*a]\nstimuli: []\n",
    "wide": "name: w\nstimuli:\n" + "- {}\n" * 500,
    "long-line": f"nam: {'x' * 1_000_000}\nstimuli: [{{name: a, prompt: p}}]\n",
    "nul": "name: a\x00b\nstimuli: []\n",
    "utf-16": "name: a\nstimuli: []\n".encode("utf-16"),
    "catastrophic-regex": json.dumps(
        {**WHOLE, "graders": [{"type": "output-matches", "config": {"pattern": "(" * 5000}}]}
    ),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_spec_made_to_hurt_is_an_error_with_a_place(case: str) -> None:
    assert check(BOMBS[case]) == 1
