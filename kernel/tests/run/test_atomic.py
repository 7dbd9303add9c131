"""Files replaced as a whole."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vally.run.atomic import atomic_write

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("é\n", "é\n".encode()),
        (["é\n", b"\xff", "\ud800"], b"\xc3\xa9\n\xff?"),
    ],
)
def test_a_file_is_written_and_replaced(tmp_path: Path, data: bytes | str | list[bytes | str], content: bytes) -> None:
    path = tmp_path / "f.json"
    atomic_write(path, "old")
    atomic_write(path, data)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@POSIX
def test_permissions(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        atomic_write(tmp_path / "usual", b"")
        atomic_write(tmp_path / "private", b"", mode=0o600)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_nothing_is_left_when_it_fails(tmp_path: Path) -> None:
    target = tmp_path / "dir"
    (target / "child").mkdir(parents=True)
    with pytest.raises(OSError, match=r"."):
        atomic_write(target, b"x")
    assert list(tmp_path.iterdir()) == [target]


def test_leftovers_of_dead_writers_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    dead = [tmp_path / f".f.json.{ended.pid}-abc.tmp", tmp_path / ".f.json.Xy12.tmp"]
    kept = [
        tmp_path / f".f.json.{os.getpid()}-abc.tmp",
        tmp_path / ".other.json.Xy12.tmp",
        tmp_path / "f.json.Xy12.tmp",
        tmp_path / ".f.json.tmp",
    ]
    stale = tmp_path / f".f.json.{os.getpid()}-def.tmp"
    for path in (*dead, *kept, stale):
        path.touch()
    os.utime(stale, (0, 0))
    atomic_write(tmp_path / "f.json", b"x")
    assert set(tmp_path.iterdir()) == {*kept, tmp_path / "f.json"}


def test_writers_at_the_same_time_leave_one_whole_content(tmp_path: Path) -> None:
    path = tmp_path / "f"
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    writers = [threading.Thread(target=atomic_write, args=(path, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_the_user_named_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for name in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            atomic_write(name, ["a", b"b"], is_named=True)
            assert os.read(reader, 10) == b"ab"
        finally:
            os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real/file", tmp_path / "link"
    link.symlink_to(file)
    for content in (b"new", b"newer"):
        atomic_write(link, content, is_named=True)
        assert file.read_bytes() == content
    assert link.is_symlink()
    assert [path.name for path in file.parent.iterdir()] == ["file"]
