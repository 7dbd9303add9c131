"""Fixtures of a trial of an executor without a backend."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from vally.testing import MockLlm, process_sentinel


@pytest.fixture
def anyio_backend() -> str:
    """What asynchronous tests run on."""
    return "asyncio"


@pytest.fixture
def trial_id() -> Iterator[str]:
    """The id of a trial that leaves no process behind."""
    chosen = str(uuid.uuid4())
    with process_sentinel(chosen):
        yield chosen


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """The workspace of the trial, as the agent sees it."""
    path = tmp_path / "work"
    path.mkdir()
    return path.resolve()


@pytest.fixture(scope="session")
def model() -> Iterator[MockLlm]:
    """A model server whose answers stand in the prompts."""
    with MockLlm() as server:
        yield server
