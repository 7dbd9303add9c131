"""Arguments of the backend, and the disk."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from pydantic import ValidationError

from vally import StopSignal
from vally.testing import ScriptedExecutor, Wait
from vally_backend_local import disk
from vally_backend_local.config import LocalArgs
from vally_backend_local.disk import FreeSpace, used_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("10g", 10 * 2**30), ("512m", 512 * 2**20), ("1.5k", 1536), ("2T", 2 * 2**40), ("7", 7), ("4GiB", 4 * 2**30)],
)
def test_sizes(text: str, size: int) -> None:
    assert LocalArgs.model_validate({"disk-limit": text}).disk_limit == size


@pytest.mark.parametrize("text", ["", "ten", "1x", "-1g", "1 000", ["1g", "2g"]])
def test_other_sizes_are_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="a size such as '512m' or '4g' is expected"):
        LocalArgs.model_validate({"min-free": text})


@pytest.mark.parametrize("text", ["9" * 30 + "g", "9" * 400, f"{2**20 + 1}t"])
def test_sizes_that_no_machine_has_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="a size of at most 1048576t is expected"):
        LocalArgs.model_validate({"disk-limit": text})


def test_defaults_and_unknown_names() -> None:
    assert (LocalArgs().disk_limit, LocalArgs().min_free) == (10 * 2**30, 2**30)
    with pytest.raises(ValidationError, match="disk-size"):
        LocalArgs.model_validate({"disk-size": "1g"})


def test_a_trial_that_fills_the_disk_is_ended(bench, monkeypatch) -> None:
    monkeypatch.setattr(disk, "WALK_EVERY_S", 0.05)
    bench.args = {"disk-limit": "1m", "min-free": "0"}

    def fill(_, options):
        (options.work_dir / "huge").write_bytes(b"x" * 2**21)

    outcome = bench.run(bench.stimulus(bench.diff_has()), ScriptedExecutor([fill, Wait(600)]))
    assert (outcome.status, outcome.error.code, outcome.error.retryable) == ("error", "disk-limit", False)
    assert outcome.error.message.endswith("hold more than the disk limit of 1 MiB")
    assert outcome.trajectory.end_reason == "cancelled"
    assert outcome.trajectory.diff_path


def test_a_small_trial_is_not(bench, monkeypatch) -> None:
    monkeypatch.setattr(disk, "WALK_EVERY_S", 0.05)
    outcome = bench.run(bench.stimulus(), ScriptedExecutor([{"a": "a"}, Wait(0.3)]))
    assert (outcome.status, outcome.trajectory.end_reason) == ("success", "completed")


def test_used_bytes_count_files_and_follow_no_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    assert 100_000 <= used_bytes([tmp_path / "a", tmp_path / "missing"]) < 200_000
    assert used_bytes([tmp_path / "a"], seconds=0) == 0


def test_no_trial_starts_without_free_space(bench, monkeypatch) -> None:
    free = iter([0, 0, 2**40, 2**40, 2**40])
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free, 2**40)))
    monkeypatch.setattr(FreeSpace, "__init__", _impatient(FreeSpace.__init__))
    assert bench.run(bench.stimulus()).status == "success"
    assert len(bench.said) == 1
    assert bench.said[0].startswith("waiting for disk space: less than 1024 MiB are free for ")
    assert bench.said[0].endswith("make room there, or ask for less with --backend-args min-free=SIZE")


def _impatient(real):
    def init(self, minimum, say):
        real(self, minimum, say, look_every_s=0.01)

    return init


def test_waiting_for_space_can_be_stopped(bench, monkeypatch) -> None:
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    stop = StopSignal()

    async def main(backend):
        async with anyio.create_task_group() as group:
            group.start_soon(later)
            return await bench.attempt(backend, bench.stimulus(), stop=stop)

    async def later() -> None:
        await anyio.sleep(0.1)
        stop.set("cancelled")

    assert bench.with_backend(main).skip_reason == "cancelled"


def test_what_it_waits_for_is_said_once_a_minute(tmp_path: Path, monkeypatch) -> None:
    said: list[str] = []
    clock = iter([0.0, 30.0, 59.0, 61.0, 100.0, 122.0])
    monkeypatch.setattr(disk.time, "monotonic", lambda: next(clock))
    space = FreeSpace(1, said.append)
    for _ in range(6):
        space._tell(tmp_path)
    assert len(said) == 3


def test_a_file_system_that_does_not_tell_is_enough(tmp_path: Path) -> None:
    assert FreeSpace(2**60, print).is_enough(tmp_path / "missing")
    assert not FreeSpace(2**60, print).is_enough(tmp_path)


def test_the_record_loads() -> None:
    from vally import PluginHost

    record = PluginHost().require("backend", "local")
    assert (record.isolates, record.remote) == (False, False)
    assert PluginHost().config_model(record) is LocalArgs
