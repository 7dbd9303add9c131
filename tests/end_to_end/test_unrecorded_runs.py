"""Records of runs that keep none are as safe from other runs as they are short-lived."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from vally.run.unrecorded import unrecorded_directory
from vally_backend_local.scratch import sweep


def age(directory: Path) -> None:
    os.utime(directory, (1, 1))


def test_what_other_runs_sweep_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with unrecorded_directory() as directory:
        (directory / "record").write_text("r")
        age(directory)
        sweep(tmp_path)
        assert (directory / "record").read_text() == "r"
        dead = tmp_path / f"{directory.name}-dead"
        dead.mkdir()
        (dead / "lock").touch()
        age(dead)
        sweep(tmp_path)
        assert list(tmp_path.iterdir()) == [directory]
    assert not list(tmp_path.iterdir())


def test_where_files_cannot_be_locked_there_is_a_place_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with unrecorded_directory() as directory:
        assert directory.is_dir()
    assert not directory.exists()
