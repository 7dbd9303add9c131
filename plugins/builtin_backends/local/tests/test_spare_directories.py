"""Directories that trials hand on to later ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vally.testing import ScriptedExecutor
from vally_backend_local.spare_directories import SpareDirectories


@pytest.fixture
def spare(tmp_path: Path) -> SpareDirectories:
    (tmp_path / "store").mkdir()
    return SpareDirectories(tmp_path / "store")


def test_an_empty_directory_comes_back_under_a_new_name(spare: SpareDirectories, tmp_path: Path) -> None:
    spare.make(tmp_path / "one")
    inode = (tmp_path / "one").stat().st_ino
    assert spare.keep(tmp_path / "one")
    assert not (tmp_path / "one").exists()
    spare.make(tmp_path / "two")
    assert (tmp_path / "two").stat().st_ino == inode
    spare.make(tmp_path / "three")
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "two", tmp_path / "three")] == [0o700, 0o700]


def _with_file(path: Path) -> None:
    (path / "a").touch()


def _with_mode(path: Path) -> None:
    path.chmod(0o755)


def _with_attribute(path: Path) -> None:
    try:
        os.setxattr(path, "user.note", b"x")
    except (AttributeError, OSError):
        pytest.skip("the file system has no extended attributes")


def _as_link(path: Path) -> None:
    path.rmdir()
    path.symlink_to(path.parent / "store")


@pytest.mark.parametrize("change", [_with_file, _with_mode, _with_attribute, _as_link, Path.rmdir])
def test_a_directory_that_was_changed_is_not_kept(change: object, spare: SpareDirectories, tmp_path: Path) -> None:
    spare.make(tmp_path / "one")
    assert callable(change)
    change(tmp_path / "one")
    assert not spare.keep(tmp_path / "one")


def test_nothing_stays_after_the_run(spare: SpareDirectories, tmp_path: Path) -> None:
    for name in ("a", "b"):
        spare.make(tmp_path / name)
    for name in ("a", "b"):
        spare.keep(tmp_path / name)
    spare.close()
    assert [path.name for path in tmp_path.rglob("*")] == ["store"]


@pytest.mark.parametrize("starts_process", [False, True])
def test_directories_that_a_process_knew_are_not_kept(  # type: ignore[no-untyped-def]
    bench, monkeypatch: pytest.MonkeyPatch, starts_process: bool
) -> None:
    kept: list[bool] = []
    keep = SpareDirectories.keep

    def noted(spare: SpareDirectories, path: Path) -> bool:
        kept.append(keep(spare, path))
        return kept[-1]

    monkeypatch.setattr(SpareDirectories, "keep", noted)

    async def step(_: object, options: object) -> None:
        if starts_process:
            await options.runner.run(["true"])  # type: ignore[attr-defined]

    outcome = bench.run(bench.stimulus(), ScriptedExecutor([step]))
    # The workspace, what is around it, and the private directory; a fourth one is made for confined processes only.
    assert sum(kept) == (0 if starts_process else 3)
    assert not outcome.work_dir.exists()
