"""Copying artifacts: what is chosen, links, limits and trouble with single files."""

from __future__ import annotations

import os
import stat

import pytest

from vally_backend_local.artifacts import copy_artifacts


def everything(path):
    return True


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "workspace"
    (root / "out" / "deep").mkdir(parents=True)
    (root / "out" / "a.txt").write_bytes(b"a\r\n")
    (root / "out" / "deep" / "b.bin").write_bytes(b"\0\xff")
    (root / "c.txt").write_text("c")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("x")
    return root


def copied(target):
    return {str(path.relative_to(target)): path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()}


def test_relative_paths_and_bytes_are_kept(workspace, tmp_path):
    assert copy_artifacts(workspace, tmp_path / "t", include=everything) == []
    assert copied(tmp_path / "t") == {"c.txt": b"c", "out/a.txt": b"a\r\n", "out/deep/b.bin": b"\0\xff"}


def test_include_and_exclude(workspace, tmp_path):
    include = lambda path: path.startswith("out/")  # noqa: E731 - a predicate in one line
    exclude = lambda path: path.endswith(".bin")  # noqa: E731 - likewise
    assert copy_artifacts(workspace, tmp_path / "t", include=include, exclude=exclude) == []
    assert copied(tmp_path / "t") == {"out/a.txt": b"a\r\n"}


def test_nothing_chosen_makes_no_directory(workspace, tmp_path):
    assert copy_artifacts(workspace, tmp_path / "t", include=lambda _: False) == []
    assert not (tmp_path / "t").exists()


def test_the_git_directory_is_entered_only_when_asked_for(workspace, tmp_path):
    copy_artifacts(workspace, tmp_path / "t", include=everything, enter_git=True)
    assert ".git/HEAD" in copied(tmp_path / "t")


def test_the_executable_bit_is_kept(workspace, tmp_path):
    (workspace / "c.txt").chmod(0o755)
    copy_artifacts(workspace, tmp_path / "t", include=everything)
    assert (tmp_path / "t" / "c.txt").stat().st_mode & stat.S_IXUSR
    assert not (tmp_path / "t" / "out" / "a.txt").stat().st_mode & stat.S_IXUSR


def test_links(workspace, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    for name, goal in {
        "inside": "c.txt",
        "leaves": "../secret",
        "absolute": tmp_path / "secret",
        "dangles": "nowhere",
        "loop": "loop",
        "to-dir": "out",
        "to-outside": tmp_path / "outside",
    }.items():
        (workspace / name).symlink_to(goal)
    warnings = copy_artifacts(workspace, tmp_path / "t", include=everything)
    found = copied(tmp_path / "t")
    assert found["inside"] == b"c"
    assert b"secret" not in found.values()
    assert sorted(found) == ["c.txt", "inside", "out/a.txt", "out/deep/b.bin"]
    assert warnings == [
        "artifact 'absolute' was not copied: outside workspace",
        "artifact 'dangles' was not copied: dangling link",
        "artifact 'leaves' was not copied: outside workspace",
        "artifact 'loop' was not copied: dangling link",
        "artifact 'to-outside' was not copied: outside workspace",
    ]


def test_pipes_do_not_hang_the_copy(workspace, tmp_path):
    os.mkfifo(workspace / "pipe")
    (workspace / "to-pipe").symlink_to("pipe")
    assert copy_artifacts(workspace, tmp_path / "t", include=everything) == []
    assert "pipe" not in copied(tmp_path / "t")


def test_a_name_that_is_not_utf8(workspace, tmp_path):
    name = os.fsdecode(b"n\xff")
    (workspace / name).write_text("x")
    assert copy_artifacts(workspace, tmp_path / "t", include=lambda path: path == name) == []
    assert (tmp_path / "t" / name).read_text() == "x"


@pytest.mark.parametrize(("limit", "kept", "warned"), [(3, 3, False), (2, 2, True), (0, 0, True)])
def test_the_limit_of_files(workspace, tmp_path, limit, kept, warned):
    warnings = copy_artifacts(workspace, tmp_path / "t", include=everything, max_files=limit)
    assert len(copied(tmp_path / "t")) == kept
    assert warnings == ([f"artifacts: stopped after {limit} files (limit {limit})"] if warned else [])


@pytest.mark.parametrize(("limit", "kept", "warned"), [(6, 3, False), (5, 2, True), (0, 0, True)])
def test_the_limit_of_bytes(workspace, tmp_path, limit, kept, warned):
    warnings = copy_artifacts(workspace, tmp_path / "t", include=everything, max_bytes=limit)
    found = copied(tmp_path / "t")
    assert len(found) == kept
    size = sum(map(len, found.values()))
    assert warnings == ([f"artifacts: stopped after {size} bytes (limit {limit})"] if warned else [])


def test_a_missing_workspace_is_a_warning(tmp_path):
    assert copy_artifacts(tmp_path / "none", tmp_path / "t", include=everything) == [
        "artifacts of '.' were not copied: No such file or directory"
    ]


def test_many_warnings_are_cut(workspace, tmp_path):
    for number in range(25):
        (workspace / f"link{number:02}").symlink_to("nowhere")
    warnings = copy_artifacts(workspace, tmp_path / "t", include=everything)
    assert len(warnings) == 21
    assert warnings[-1] == "… and 5 more artifact warnings"


def test_a_target_that_cannot_be_written_is_an_error(workspace, tmp_path):
    (tmp_path / "t").write_text("a file")
    with pytest.raises(OSError, match="t"):
        copy_artifacts(workspace, tmp_path / "t", include=everything)
