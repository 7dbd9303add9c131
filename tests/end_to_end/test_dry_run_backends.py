"""`--dry-run` asks the backend whether it could run what is planned, and starts nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from vally import BackendError, BackendSpec
from vally.testing import CliResult, run_cli
from vally_backend_local import LocalBackend

EXPERIMENT = """
name: x
evals: [eval.yaml]
vary: [/defaults/model]
variants: {a: {overrides: {model: m1}}, b: {overrides: {model: m2}}}
"""


class Asked:
    """A backend that tells, or raises, what it is made with, and may do nothing else."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.configs: list[Any] = []
        self.shutdowns = 0

    async def preflight(self, config: Any, context: Any) -> object:
        self.configs.append((config, context.items))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def prepare(self, args: Any, context: Any) -> None:
        raise AssertionError("it is prepared")

    run_trial = grade_trial = prepare

    async def shutdown(self) -> None:
        self.shutdowns += 1


class Silent:
    """A backend that cannot be asked."""

    async def prepare(self, args: Any, context: Any) -> None:
        raise AssertionError("it is prepared")

    run_trial = grade_trial = prepare

    async def shutdown(self) -> None:
        pass


def dry_run(root: Path, backend: Any, *words: str) -> CliResult:
    stimulus = {"name": "s", "prompt": "p", "graders": [{"type": "completed"}]}
    spec = {"name": "e", "defaults": {"executor": "mock"}, "stimuli": [stimulus]}
    (root / "eval.yaml").write_text(json.dumps(spec))
    record = BackendSpec(name="asked", summary="is asked", factory=lambda: backend)
    return run_cli(["eval", "-e", "eval.yaml", "--dry-run", "--backend", "asked", *words], cwd=root, plugins=[record])


def test_what_a_backend_tells_stands_below_the_plan(tmp_path: Path) -> None:
    backend = Asked("two slots are free")
    result = dry_run(tmp_path, backend)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Plan: 1 eval, 1 item")
    assert result.stderr == "backend 'asked': two slots are free\n"
    assert [items for _, items in backend.configs] == [1]
    assert backend.shutdowns == 1
    assert dry_run(tmp_path, backend, "--quiet").stderr == ""
    assert json.loads(dry_run(tmp_path, backend, "--output", "json").stdout)["type"] == "eval-plan"


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            BackendError("no daemon", code="x-no-daemon", where="--backend asked", hints=["start it"]),
            "error: --backend asked: no daemon [x-no-daemon]\n  start it\n",
        ),
        (
            ZeroDivisionError("oops"),
            "error: backend 'asked' cannot start: ZeroDivisionError: oops [backend-exception]\n",
        ),
    ],
)
def test_a_backend_that_cannot_start_is_an_error_after_the_plan(tmp_path: Path, failure: Exception, told: str) -> None:
    backend = Asked(failure)
    result = dry_run(tmp_path, backend)
    assert (result.exit_code, result.stdout[:5], result.stderr) == (1, "Plan:", told)
    assert backend.shutdowns == 1


def test_that_a_backend_cannot_be_asked_is_said(tmp_path: Path) -> None:
    result = dry_run(tmp_path, Silent())
    assert (result.exit_code, result.stderr) == (
        0,
        "backend 'asked': it does not tell beforehand whether it can start\n",
    )


def test_an_experiment_asks_as_well(tmp_path: Path) -> None:
    dry_run(tmp_path, Asked(""))
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    record = BackendSpec(name="asked", summary="is asked", factory=lambda: Asked(BackendError("no daemon")))
    words = ["experiment", "run", "experiment.yaml", "--dry-run", "--backend", "asked"]
    result = run_cli(words, cwd=tmp_path, plugins=[record])
    assert (result.exit_code, result.stdout[:11]) == (1, "Experiment:"), result.stderr
    assert "error: --backend asked: no daemon\n" in result.stderr


class Refusing(Silent):
    """A backend that cannot be made ready."""

    async def prepare(self, args: Any, context: Any) -> None:
        raise BackendError("no daemon", hints=["start it"])


def test_an_error_without_a_place_says_which_backend_was_asked_for(tmp_path: Path) -> None:
    told = "error: --backend asked: no daemon\n  start it\n"
    assert dry_run(tmp_path, Asked(BackendError("no daemon", hints=["start it"]))).stderr == told
    record = BackendSpec(name="asked", summary="is asked", factory=Refusing)
    for words in (["--backend", "asked"], []):
        result = run_cli(["eval", "-e", "eval.yaml", *words], cwd=tmp_path, plugins=[record])
        assert (result.exit_code, result.stderr) == (1, told)
        (tmp_path / ".vally.yaml").write_text("backend: {name: asked}\n")


def test_a_backend_that_nobody_asked_for_is_not_told_as_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalBackend, "prepare", Refusing.prepare)
    dry_run(tmp_path, Silent())
    assert run_cli(["eval", "-e", "eval.yaml"], cwd=tmp_path).stderr == "error: no daemon\n  start it\n"


NOWHERE = {
    "sandbox": [
        "bwrap was not found on PATH [sandbox-unavailable]",
        "install the package 'bubblewrap', or use --backend",
    ],
    "podman": ["podman was not found on PATH [container-unavailable]", "install the package 'podman'"],
    "docker": ["docker was not found on PATH [container-unavailable]", "install Docker"],
    "container": [
        *("neither podman nor docker answers [container-unavailable]", "podman: was not found on PATH"),
        *("docker: was not found on PATH", "install the package 'podman'"),
    ],
}


@pytest.mark.parametrize("name", NOWHERE)
def test_programs_that_are_missing(tmp_path: Path, name: str) -> None:
    dry_run(tmp_path, Asked(""))
    env = {"PATH": str(tmp_path)}
    for words, stdout in ((["--dry-run"], "Plan:"), ([], "")):
        result = run_cli(["eval", "-e", "eval.yaml", "--backend", name, *words], cwd=tmp_path, env=env)
        assert (result.exit_code, result.stdout[:5], result.run_dir) == (1, stdout, None)
        first, *hints = NOWHERE[name]
        assert f"error: --backend {name}: {first}" in result.stderr
        assert not [hint for hint in hints if hint not in result.stderr]
        assert not (tmp_path / "vally-results").exists()
    lines = run_cli(["doctor"], cwd=tmp_path, env=env).stdout.splitlines()
    (line,) = [line for line in lines if line.split()[1:3] == ["backend", name]]
    assert "cannot start: " in line
    assert f"--backend {name}" not in line


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_sandbox_that_works(tmp_path: Path) -> None:
    dry_run(tmp_path, Asked(""))
    result = run_cli(["eval", "-e", "eval.yaml", "--dry-run", "--backend", "sandbox"], cwd=tmp_path)
    assert (result.exit_code, result.stderr) == (0, f"backend 'sandbox': '{shutil.which('bwrap')}' makes sandboxes\n")
