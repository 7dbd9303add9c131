"""The results file of a run that is continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally.run.results_file import ResultsFile, index_results
from vally.run.resuming import restart_results, results_to_resume


def _line(item: str, **fields: Any) -> bytes:
    return json.dumps({"type": "trial-result", "itemId": item, **fields}).encode() + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@pytest.mark.parametrize("links", [True, False])
def test_a_resumed_run_keeps_the_former_file(path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr("os.link", _no_link)
    former = _line("a", spaced={"x": 1.50}) + _line("b") + b'{"torn'
    path.write_bytes(former)
    index = index_results(path)
    restart_results(path, [raw for raw in index.raw_lines() if b'"a"' in raw])
    with ResultsFile(path) as file:
        file.append(_line("b", again=True))
    assert path.read_bytes() == _line("a", spaced={"x": 1.50}) + _line("b", again=True)
    assert (path.parent / "results.jsonl.prev").read_bytes() == former
    assert len(list(path.parent.iterdir())) == 2


def _no_link(*_: object) -> None:
    raise OSError("hard links are not supported")


def test_a_failed_restart_changes_nothing(path: Path) -> None:
    path.write_bytes(_line("a"))

    def kept() -> Any:
        yield _line("a")[:-1]
        raise OSError("cannot read")

    with pytest.raises(OSError, match="cannot read"):
        restart_results(path, kept())
    assert [(found.name, found.read_bytes()) for found in path.parent.iterdir()] == [("results.jsonl", _line("a"))]


def test_the_file_to_resume_from(path: Path) -> None:
    previous = path.with_name("results.jsonl.prev")
    assert results_to_resume(path) == path
    previous.touch()
    assert results_to_resume(path) == previous
    path.touch()
    assert results_to_resume(path) == path


def test_a_restart_from_the_former_file_alone(path: Path) -> None:
    previous = path.with_name("results.jsonl.prev")
    previous.write_bytes(_line("a"))
    restart_results(path, index_results(results_to_resume(path)).raw_lines())
    assert path.read_bytes() == previous.read_bytes() == _line("a")
