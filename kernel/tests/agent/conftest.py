"""A trial without a backend: a stimulus and the options an executor gets."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorOptions, LocalProcessRunner, Skill, Stimulus


@pytest.fixture
def make_options(tmp_path: Path) -> Callable[..., ExecutorOptions]:
    work_dir, trial_dir = tmp_path / "work", tmp_path / "trial"
    work_dir.mkdir(exist_ok=True)
    trial_dir.mkdir()

    def make(**changes: Any) -> ExecutorOptions:
        return ExecutorOptions(
            **{
                "item_id": "item",
                "trial_id": "trial-1",
                "work_dir": work_dir,
                "trial_dir": trial_dir,
                "spec_dir": tmp_path,
                "timeout_ms": 60_000,
                "deadline": time.monotonic() + 60,
                "runner": LocalProcessRunner("trial-1", {}),
                **changes,
            }
        )

    return make


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    path = tmp_path / "work" / "skills" / "greeter" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: greeter\n---\nGreet.\n")
    return Skill(name="greeter", description="Greets", path=path, raw_content=path.read_text(), frontmatter={})


@pytest.fixture
def stimulus() -> Stimulus:
    return Stimulus(name="s", prompt="hi", turns=("hi",), document={"name": "s", "prompt": "hi"})


@pytest.fixture
def two_turns() -> Stimulus:
    return Stimulus(
        name="s", prompt="a\n\nb", turns=("a", "b"), has_turns=True, document={"name": "s", "turns": ["a", "b"]}
    )
