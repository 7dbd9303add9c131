"""Sentinels notice what they are there for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vally.testing import process_sentinel, tree_digest

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_nothing_left() -> None:
    with process_sentinel():
        subprocess.run([sys.executable, "-c", ""], check=True)


def test_a_child_left() -> None:
    child = None
    try:
        with pytest.raises(AssertionError, match="processes left: "), process_sentinel(patience=0.1):
            child = subprocess.Popen(SLEEP)
    finally:
        assert child is not None
        child.kill()
        child.wait()


def test_a_process_of_a_trial_left() -> None:
    # Started before the block, so that only the mark can tell.
    child = subprocess.Popen(SLEEP, env={**os.environ, "VALLY_TRIAL": "trial-of-this-test"})
    try:
        with (
            pytest.raises(AssertionError, match="of trial trial-of-this-test"),
            process_sentinel("trial-of-this-test", patience=0.1),
        ):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_failure_of_the_test_itself_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), process_sentinel():
        _ = 1 / 0


def _chmod(root: Path) -> None:
    (root / "a.txt").chmod(0o600)


def _touch(root: Path) -> None:
    os.utime(root / "a.txt", ns=(1, 1))


def _rewrite(root: Path) -> None:
    status = (root / "a.txt").stat()
    (root / "a.txt").write_text("two")
    os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))


def _relink(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("b.txt")


def _add(root: Path) -> None:
    (root / ".git" / "new").touch()


def _rename(root: Path) -> None:
    (root / "a.txt").rename(root / "c.txt")


@pytest.mark.parametrize("change", [_chmod, _touch, _rewrite, _relink, _add, _rename])
def test_a_digest_sees_every_change(tmp_path: Path, change: Callable[[Path], None]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "link").symlink_to("a.txt")
    before = tree_digest(tmp_path)
    assert tree_digest(tmp_path) == before
    change(tmp_path)
    assert tree_digest(tmp_path) != before
