"""Outcomes and files that came back."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from vally import BackendError, Redactor, Selection
from vally_backend_ray.outcome import RemoteOutcome, arrived, lost, put_in_place

SECRET = "a-secret-of-the-driver"


def test_losses_are_counted_and_told() -> None:
    outcome = arrived(RemoteOutcome("success", warnings=("own",), backend_name="ray/local"), ["worker 1 was lost"])
    assert (outcome.lost_attempts, outcome.warnings) == (1, ("worker 1 was lost", "own"))
    assert outcome.backend_name == "ray/local"


def test_too_many_losses_are_an_error_that_is_worth_a_retry() -> None:
    outcome = lost(["first", "second", "third"], "ray/local")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.retryable, outcome.error.phase) == ("worker-lost", True, "running")
    assert "3 workers were lost" in outcome.error.message
    assert "third" in outcome.error.message
    # The attempt that is recorded in any case is one of them.
    assert outcome.lost_attempts == 2


def test_after_the_clean_up_nothing_is_left_to_fetch(tmp_path: Path) -> None:
    outcome = arrived(RemoteOutcome("success"), [])

    async def main() -> None:
        assert list(await outcome.cleanup()) == []
        assert list(await outcome.cleanup()) == []
        with pytest.raises(BackendError, match="workspace is not available"):
            await outcome.export_workspace(Selection(whole=True), tmp_path)

    anyio.run(main)


def test_files_lose_secrets_but_artifacts_stay_as_they_are(tmp_path: Path) -> None:
    source, run_dir = tmp_path / "in", tmp_path / "run"
    output_dir = run_dir / "e" / "s" / "0"
    for name in ("workspace.diff", "workspace.patch", "artifacts/x.txt", "artifacts/deep/raw.bin"):
        path = source / "e/s/0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"+" + SECRET.encode() + b"\n\xff\r\n")
    (source / "e/s/0/artifacts/link").symlink_to("x.txt")
    put_in_place(source, run_dir, output_dir, Redactor({"MY_TOKEN": SECRET}))
    assert (output_dir / "workspace.diff").read_bytes() == b"+<redacted:MY_TOKEN>\n\xff\r\n"
    assert (output_dir / "workspace.patch").read_bytes() == b"+<redacted:MY_TOKEN>\n\xff\r\n"
    assert SECRET.encode() in (output_dir / "artifacts/x.txt").read_bytes()
    assert SECRET.encode() in (output_dir / "artifacts/deep/raw.bin").read_bytes()
    assert (output_dir / "artifacts/link").readlink() == Path("x.txt")
