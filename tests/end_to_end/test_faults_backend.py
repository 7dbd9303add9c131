"""Backends that misbehave: what cannot be run is recorded, and what was made before is taken down again."""

from __future__ import annotations

from pathlib import Path

import pytest
from misbehaving import backend
from programs import check_closed, evaluate, write_spec


@pytest.mark.parametrize("do", ["prepare-raise", "prepare-exit"])
def test_a_backend_that_cannot_start_leaves_no_run_directory(tmp_path: Path, do: str) -> None:
    record, made = backend(do)
    write_spec(tmp_path, ["one"])
    result = evaluate(tmp_path, "--backend", "bad", plugins=[record])
    assert result.exit_code == 1
    reason = {"prepare-raise": "OSError: no such device", "prepare-exit": "SystemExit: 0"}[do]
    assert f"error: backend 'bad' cannot start: {reason}" in result.stderr
    assert not (tmp_path / "out").exists()
    assert made.shutdowns == 1


ERRORS = {
    "raise-first": "backend failed: OSError: no such device",
    "exit": "backend failed: SystemExit: 0",
    "none": "backend failed: TypeError: NoneType is not the outcome of a trial",
    "text": "backend failed: TypeError: str is not the outcome of a trial",
    "warnings": "backend failed: TypeError",
    "trajectory": "backend failed: ValidationError",
}


@pytest.mark.parametrize("do", ERRORS)
def test_a_backend_that_breaks_the_protocol_stops_the_run(tmp_path: Path, do: str) -> None:
    record, made = backend(do)
    write_spec(tmp_path, ["one", "two"])
    result = evaluate(tmp_path, "--backend", "bad", "--runs", "3", "--workers", "1", plugins=[record])
    assert result.exit_code == 1
    summary = check_closed(result.records, 6)
    assert (summary["partial"], summary["stopReason"], summary["passed"]) == (True, "error", False)
    first, *rest = result.records[:-1]
    assert first["error"].startswith(ERRORS[do])
    assert first["errorInfo"]["code"] == "backend-exception"
    assert {item["skipReason"] for item in rest} == {"cancelled"}
    assert made.shutdowns == 1


def test_running_trials_end_when_another_breaks_the_backend(tmp_path: Path) -> None:
    record, _ = backend("raise-together")
    write_spec(tmp_path, [{"name": "one", "prompt": "p"}])
    result = evaluate(tmp_path, "--backend", "bad", "--runs", "3", "--workers", "3", plugins=[record])
    check_closed(result.records, 3)
    assert sorted(item["status"] for item in result.records[:-1]) == ["error", "success", "success"]


@pytest.mark.parametrize("do", ["shutdown-raise", "cleanup-raise"])
def test_a_backend_that_does_not_end_well_is_a_warning(tmp_path: Path, do: str) -> None:
    record, _ = backend(do)
    write_spec(tmp_path, [{"name": "one", "prompt": "p"}])
    result = evaluate(tmp_path, "--backend", "bad", plugins=[record])
    assert result.exit_code == 0
    check_closed(result.records, 1)
    told = result.stderr if do == "shutdown-raise" else " ".join(result.records[0]["warnings"])
    assert "OSError: no such device" in told
