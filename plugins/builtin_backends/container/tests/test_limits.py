"""Reading the counters of control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally_backend_container.config import ContainerArgs
from vally_backend_container.limits import LimitsHit, counted

FIRST = {
    "proc/7/cgroup": "9:pids:/box\n8:cpu,cpuacct:/box\n3:memory:/box\n1:name=systemd:/box\n0::/box\n",
    "root/memory/box/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "root/pids/box/pids.events": "max 5\n",
}
SECOND = {
    "proc/7/cgroup": "0::/a/box\n",
    "root/a/box/memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\n",
    "root/a/box/pids.events": "max 5\n",
}


@pytest.mark.parametrize("files", [FIRST, SECOND], ids=["version-1", "version-2"])
def test_counters_of_control_groups(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert counted(7, tmp_path / "proc", tmp_path / "root") == LimitsHit(memory=2, pids=5)


@pytest.mark.parametrize("text", ["", "0::/gone\n", "9:pids:/gone\n"])
def test_what_cannot_be_read_counts_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(text)
    assert counted(7, tmp_path, tmp_path) == counted(8, tmp_path, tmp_path) == counted(0) == LimitsHit()


def test_remarks_name_the_limit() -> None:
    assert LimitsHit().remarks(ContainerArgs()) == []
    memory, pids = LimitsHit(memory=1, pids=3).remarks(ContainerArgs())
    assert "its memory limit of 4096 MiB was reached" in memory
    assert "its limit of 512 processes was reached" in pids
