"""What cannot be confined as asked is refused."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import BackendError, CamelConfig
from vally.testing import ScriptedExecutor, run_context, stimulus, trial_item, trial_options
from vally_backend_sandbox import backend as backend_module
from vally_backend_sandbox.backend import SandboxBackend
from vally_backend_sandbox.counting import ProcessGroups, counting_directory
from vally_backend_sandbox.probing import find_bwrap

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


class HomeConfig(CamelConfig):
    home: str = "host"


def outcome_of(directory: Path, *, args: dict[str, Any], item: dict[str, Any], **options: Any) -> Any:
    """What becomes of one trial whose agent only speaks."""

    async def main() -> Any:
        backend = SandboxBackend()
        await backend.prepare(args, run_context(directory, process_env=dict(os.environ)))
        executor = ScriptedExecutor()
        try:
            outcome = await backend.run_trial(
                trial_item(directory, stimulus(), **item),
                trial_options(executor, [executor.record()], process_env=dict(os.environ), **options),
            )
            await outcome.cleanup()
        finally:
            await backend.shutdown()
        return outcome

    return anyio.run(main)


@needs_bwrap
def test_the_caller_s_home_must_be_shown_to_be_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    keeps = {"executor_config": HomeConfig()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        refused = outcome_of(tmp_path, args={}, item={}, **keeps)
        allowed = outcome_of(tmp_path, args={"ro": str(home)}, item={}, **keeps)
    assert refused.error.code == "unsupported-option"
    assert f"--backend-args ro={home}" in refused.error.message
    assert allowed.status == "success", allowed.error


@needs_bwrap
def test_a_project_that_holds_the_system_cannot_be_hidden(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, args={}, item={"project_root": Path("/")})
    assert outcome.error.code == "sandbox-unavailable"
    assert "'/' cannot be hidden from the agent" in outcome.error.message


@needs_bwrap
def test_root_without_control_groups_cannot_bound_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(backend_module, "counting_directory", lambda: None)
    with pytest.raises(BackendError, match="'pids' does not bind root"):
        anyio.run(SandboxBackend().prepare, {"pids": "10"}, run_context(tmp_path))


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BackendError, match="it needs Linux") as caught:
        find_bwrap({})
    assert caught.value.code == "sandbox-unavailable"


def test_a_directory_without_the_controller_counts_nothing(tmp_path: Path) -> None:
    assert counting_directory(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_groups_are_removed(tmp_path: Path) -> None:
    groups = ProcessGroups(tmp_path, 7)
    entry = groups.make("one")
    assert (entry.parent / "pids.max").read_text() == "7"
    (entry.parent / "pids.max").unlink()
    groups.remove("one")
    groups.remove("never-made")
    assert (groups.close(), list(tmp_path.iterdir())) == ([], [])
