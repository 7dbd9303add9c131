"""Files and directories of the host put into a workspace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from vally_backend_local.failures import SetupError
from vally_backend_local.staging import Stager


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "sub" / "b.sh").write_text("b")
    (root / "sub" / "b.sh").chmod(0o750)
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def names(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@pytest.mark.parametrize(
    ("dest", "expected"),
    [
        (".", ["a.txt", "sub", "sub/b.sh"]),
        ("deep/er", ["deep", "deep/er", "deep/er/a.txt", "deep/er/sub", "deep/er/sub/b.sh"]),
        ("deep/", ["deep", "deep/a.txt", "deep/sub", "deep/sub/b.sh"]),
    ],
)
def test_contents_of_a_directory_lie_under_dest(source: Path, workspace: Path, dest: str, expected: list[str]) -> None:
    Stager(workspace).stage(source, dest)
    assert names(workspace) == expected


@pytest.mark.parametrize(
    ("dest", "keep_name", "expected"),
    [
        ("b.txt", False, "b.txt"),
        ("x/b.txt", False, "x/b.txt"),
        (".", False, "a.txt"),
        ("new", True, "new/a.txt"),
        ("there", False, "there/a.txt"),
    ],
)
def test_a_file_becomes_dest_or_keeps_its_name_inside(
    source: Path, workspace: Path, dest: str, keep_name: bool, expected: str
) -> None:
    (workspace / "there").mkdir()
    Stager(workspace).stage(source / "a.txt", dest, keep_name=keep_name)
    assert (workspace / expected).read_text() == "a"


def test_permission_bits_are_kept_and_times_are_not(source: Path, workspace: Path) -> None:
    (source / "sub").chmod(0o750)
    os.utime(source / "a.txt", (1, 1))
    Stager(workspace).stage(source, ".")
    assert stat.S_IMODE((workspace / "sub" / "b.sh").stat().st_mode) == 0o750
    assert stat.S_IMODE((workspace / "sub").stat().st_mode) == 0o750
    assert (workspace / "a.txt").stat().st_mtime > 1_000_000


def test_later_entries_overwrite_earlier_ones(source: Path, workspace: Path) -> None:
    stager = Stager(workspace)
    stager.stage(source, ".")
    (source / "a.txt").write_text("new")
    stager.stage(source / "a.txt", "sub/b.sh")
    assert (workspace / "sub" / "b.sh").read_text() == "new"
    assert (workspace / "a.txt").read_text() == "a"


def test_an_empty_directory_is_staged(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "source" / "empty").mkdir(parents=True)
    Stager(workspace).stage(tmp_path / "source", ".")
    assert names(workspace) == ["empty"]


def test_a_link_as_source_is_followed(source: Path, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "file-link").symlink_to(source / "a.txt")
    Stager(workspace).stage(tmp_path / "link", "dir")
    Stager(workspace).stage(tmp_path / "file-link", "plain")
    assert not (workspace / "dir").is_symlink()
    assert (workspace / "plain").read_text() == "a"
    assert not (workspace / "plain").is_symlink()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.txt", "a.txt"),
        ("sub/../a.txt", "sub/../a.txt"),
        ("{root}/sub/b.sh", "sub/b.sh"),
        ("../source/a.txt", "a.txt"),
        ("missing", "missing"),
        ("link", "link"),
        (".", "."),
    ],
    ids=["plain", "dots", "absolute", "way-outside", "dangling", "loop", "top"],
)
def test_a_link_inside_its_tree_stays_inside_the_copy(source: Path, workspace: Path, text: str, expected: str) -> None:
    (source / "link").symlink_to(text.format(root=source))
    Stager(workspace).stage(source, ".")
    assert str((workspace / "link").readlink()) == expected


@pytest.mark.parametrize("text", ["/etc/passwd", "../outside", "sub/out/x", "{root}-not/a.txt"])
def test_a_link_that_leaves_its_tree_is_an_error(source: Path, workspace: Path, text: str, tmp_path: Path) -> None:
    (source / "sub" / "out").symlink_to(tmp_path)
    if text != "sub/out/x":
        (source / "sub" / "out").unlink()
    (source / "link").symlink_to(text.format(root=source))
    with pytest.raises(SetupError, match="leads out of") as caught:
        Stager(workspace).stage(source, ".")
    assert caught.value.code == "environment-file-escape"


def test_a_link_in_the_workspace_leads_nothing_out_of_it(source: Path, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "out").symlink_to(outside)
    (workspace / "a.txt").symlink_to(outside / "a.txt")
    Stager(workspace).stage(source / "a.txt", "a.txt")
    with pytest.raises(SetupError, match="'out' is a symbolic link that leaves the workspace"):
        Stager(workspace).stage(source, "out/deeper")
    assert names(outside) == []
    assert (workspace / "a.txt").read_text() == "a"
    assert not (workspace / "a.txt").is_symlink()


def test_a_link_to_a_directory_of_the_workspace_is_used(source: Path, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "alias").symlink_to("real")
    Stager(workspace).stage(source / "a.txt", "alias/a.txt")
    assert (workspace / "real" / "a.txt").read_text() == "a"


def test_a_file_over_a_directory_is_an_error(source: Path, workspace: Path) -> None:
    (workspace / "dir" / "a.txt").mkdir(parents=True)
    with pytest.raises(SetupError, match=r"'dir/a\.txt' is already a directory, not a file") as caught:
        Stager(workspace).stage(source / "a.txt", "dir")
    assert caught.value.code == "environment-file-conflict"


def test_a_directory_over_a_file_is_an_error(source: Path, workspace: Path) -> None:
    (workspace / "sub").write_text("")
    with pytest.raises(SetupError, match="'sub' is already a file, not a directory"):
        Stager(workspace).stage(source, ".")


def test_a_directory_below_a_file_is_an_error(source: Path, workspace: Path) -> None:
    (workspace / "sub").write_text("")
    with pytest.raises(SetupError, match="'sub' is already a file, not a directory"):
        Stager(workspace).stage(source / "a.txt", "sub/a.txt")


@pytest.mark.parametrize("dest", ["/abs", "../x", "a/../../x", ".git", ".git/hooks"])
def test_dest_must_be_inside(source: Path, workspace: Path, dest: str) -> None:
    with pytest.raises(SetupError, match="is not a path inside the workspace"):
        Stager(workspace).stage(source, dest)


def test_a_missing_source_is_named(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"file to stage not found: {tmp_path}/nowhere"):
        Stager(workspace).stage(tmp_path / "nowhere", ".")


def test_a_pipe_is_refused(source: Path, workspace: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(SetupError, match="neither a file, nor a directory, nor a symbolic link"):
        Stager(workspace).stage(source, ".")


def test_a_directory_is_not_staged_into_itself(source: Path) -> None:
    with pytest.raises(SetupError, match="into itself"):
        Stager(source).stage(source, "sub/again")
    with pytest.raises(SetupError, match="into itself"):
        Stager(source / "sub").stage(source, ".")
    assert names(source) == ["a.txt", "sub", "sub/b.sh"]


def test_staging_something_where_it_is_leaves_it_alone(source: Path) -> None:
    Stager(source).stage(source, ".")
    Stager(source).stage(source / "a.txt", "a.txt")
    assert (source / "a.txt").read_text() == "a"


def test_a_repository_in_a_source_is_copied(source: Path, workspace: Path) -> None:
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    Stager(workspace).stage(source, ".")
    assert (workspace / ".git" / "HEAD").is_file()


def test_a_repository_is_not_mixed_with_another(source: Path, workspace: Path) -> None:
    (source / ".git").mkdir()
    (workspace / ".git").mkdir()
    with pytest.raises(SetupError, match="is already a repository"):
        Stager(workspace).stage(source, ".")


@pytest.mark.parametrize(
    ("pointer", "staged"), [("gitdir: {outside}", False), ("gitdir: ../../elsewhere", False), ("gitdir: ../.g", True)]
)
def test_a_pointer_to_a_repository_elsewhere_is_left_out(
    source: Path, workspace: Path, tmp_path: Path, pointer: str, staged: bool
) -> None:
    (source / "sub" / ".git").write_text(pointer.format(outside=tmp_path) + "\n")
    stager = Stager(workspace)
    stager.stage(source, ".")
    assert (workspace / "sub" / ".git").exists() is staged
    assert len(stager.warnings) == (0 if staged else 1)


def test_a_hard_linked_target_is_replaced_not_written(source: Path, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    os.link(tmp_path / "precious", workspace / "a.txt")
    Stager(workspace).stage(source / "a.txt", "a.txt")
    assert (tmp_path / "precious").read_text() == "precious"
