"""Reporters that misbehave: a warning, and nothing else differs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from misbehaving import reporter
from programs import PLUGIN, check_closed, evaluate, finish, records_of, run_dir, start, write_spec

from vally import ReporterSpec

pytestmark = pytest.mark.heavy

HOOKS = ["on_run_start", "on_trial_start", "on_trial_phase", "on_trial_result", "on_eval_complete", "on_run_complete"]


@pytest.mark.parametrize("word", ["raise", "exit", "pipe"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_reporter_that_fails_is_disabled_and_changes_nothing(tmp_path: Path, hook: str, word: str) -> None:
    write_spec(tmp_path, ["one", "two"])
    result = evaluate(tmp_path, "--junit", plugins=[reporter(f"{hook}:{word}")])
    assert result.exit_code == 0
    assert check_closed(result.records, 2)["passed"] is True
    assert result.run_dir is not None
    assert {"eval-results.md", "eval-results.junit.xml"} <= {path.name for path in result.run_dir.iterdir()}
    (line,) = [line for line in result.stderr.splitlines() if "reporter 'bad' failed and is disabled" in line]
    assert {"raise": "OSError: no such device", "exit": "SystemExit: 0", "pipe": "BrokenPipeError"}[word] in line


def test_a_reporter_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    def factory() -> Any:
        sys.exit(0)

    write_spec(tmp_path, ["one"])
    result = evaluate(tmp_path, plugins=[ReporterSpec(name="bad", summary="cannot be made", factory=factory)])
    assert result.exit_code == 0
    assert "reporter 'bad' failed and is disabled" in result.stderr


def test_a_slow_reporter_gets_everything(tmp_path: Path) -> None:
    write_spec(tmp_path, ["one", "two", "three"])
    result = evaluate(tmp_path, plugins=[reporter("on_trial_result:sleep")])
    assert result.exit_code == 0
    assert "disabled" not in result.stderr
    check_closed(result.records, 3)


def test_an_artifact_that_is_no_path_disables_its_reporter_only(tmp_path: Path) -> None:
    write_spec(tmp_path, ["one"])
    result = evaluate(tmp_path, plugins=[reporter("none:artifact")])
    assert result.exit_code == 0
    assert "reporter 'bad' failed and is disabled: TypeError" in result.stderr
    assert "Output directory:" in result.stdout


@pytest.mark.parametrize("hook", ["on_trial_result", "on_run_complete"])
def test_a_reporter_that_hangs_does_not_hold_the_run(
    tmp_path: Path, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is a minute; this test makes it shorter by way of a start-up file of its interpreter."""
    write_spec(tmp_path, ["one", "two"])
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import vally.run.reporters as r\nr.COMPLETE_TIMEOUT_S = 0.5\n")
    env = {"BAD_REPORTER": f"{hook}:hang", "PYTHONPATH": str(site)}
    code, _, err = finish(start(tmp_path, "--reporter-plugin", str(PLUGIN), env=env))
    assert code == 0, err
    assert "reporter 'bad' failed and is disabled: TimeoutError" in err
    check_closed(records_of(tmp_path), 2)
    assert (run_dir(tmp_path) / "eval-results.md").exists()


class Colours:
    """Prints what a terminal would take for commands."""

    def on_trial_result(self, event: Any) -> None:
        print("\x1b[31mred\x1b[0m")

    def on_run_complete(self, event: Any) -> None:
        raise OSError("\x1b[2Jcleared\r::error::x")


def test_an_error_of_a_reporter_reaches_no_terminal_as_a_command(tmp_path: Path) -> None:
    write_spec(tmp_path, ["one"])
    result = evaluate(tmp_path, plugins=[ReporterSpec(name="colours", summary="prints colours", factory=Colours)])
    assert result.exit_code == 0
    assert "\x1b" not in result.stderr
    assert "\r" not in result.stderr
