"""Workspaces that try to break, mislead or escape the measurement, knowingly or not."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from vally_backend_local.git_process import Limits, SnapshotError
from vally_backend_local.snapshots import Snapshotter


def repository(git, trial):
    trial.write("a.txt", "one\n")
    trial.write("b.txt", "one\n")
    git("init", "-q", "-b", "main", cwd=trial.workspace)
    git("add", "-A", cwd=trial.workspace)
    git("commit", "-q", "-m", "first", cwd=trial.workspace)


def remove_git(git, path):
    shutil.rmtree(path / ".git")


def init_again(git, path):
    shutil.rmtree(path / ".git")
    git("init", "-q", cwd=path)


def clean(git, path):
    git("clean", "-fdxq", cwd=path)


def commit_all(git, path):
    git("add", "-A", cwd=path)
    git("commit", "-q", "--allow-empty", "-m", "agent", cwd=path)
    git("gc", "-q", "--prune=now", cwd=path)


@pytest.mark.parametrize("act", [remove_git, init_again, clean, commit_all])
def test_git_commands_of_the_agent_do_not_matter(trial, git, act):
    repository(git, trial)
    trial.baseline()
    trial.write("a.txt", "two\n")
    act(git, trial.workspace)
    text = trial.diff()
    assert "-one\n+two\n" in text
    assert text.count("diff --git") == 1


def test_the_workspace_is_never_written(trial, git, fingerprint_of):
    repository(git, trial)
    trial.write("b.txt", "staged\n")
    git("add", "b.txt", cwd=trial.workspace)
    trial.write("a.txt", "not staged\n")
    seen = fingerprint_of(trial.workspace)
    trial.baseline()
    trial.snapshots.turn(0)
    trial.snapshots.capture(trial.private / "workspace.patch")
    assert fingerprint_of(trial.workspace) == seen


def test_a_linked_worktree_with_staged_changes(make_trial, git, tmp_path, fingerprint_of):
    main = make_trial()
    repository(git, main)
    git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"), cwd=main.workspace)
    linked = tmp_path / "linked"
    (linked / "a.txt").write_text("staged\n")
    git("add", "a.txt", cwd=linked)
    status = git("status", "--porcelain", cwd=linked)
    seen = [fingerprint_of(main.workspace), fingerprint_of(linked)]
    snapshots = Snapshotter(linked, tmp_path / "private")
    before = snapshots.baseline()
    assert snapshots.diff(before, snapshots.final()).text == ""
    assert [fingerprint_of(main.workspace), fingerprint_of(linked)] == seen
    assert status == git("status", "--porcelain", cwd=linked) == "M  a.txt\n"


def test_configuration_of_the_workspace_is_not_obeyed(trial, git, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {tmp_path}/ran\ntr a-z A-Z\n")
    program.chmod(0o755)
    repository(git, trial)
    for key in ("filter.shout.clean", "filter.shout.smudge", "filter.shout.process", "core.fsmonitor", "diff.external"):
        git("config", key, str(program), cwd=trial.workspace)
    for key, value in {
        "diff.shout.textconv": str(program),
        "core.autocrlf": "true",
        "core.eol": "crlf",
        "core.safecrlf": "true",
        "commit.gpgSign": "true",
        "core.worktree": str(tmp_path),
        "core.hooksPath": str(tmp_path),
        "core.fileMode": "false",
        "core.symlinks": "false",
        "diff.noprefix": "true",
        "diff.renames": "copies",
        "color.ui": "always",
        "core.excludesFile": str(program),
    }.items():
        git("config", "--file", str(trial.workspace / ".git" / "config"), key, value, cwd=tmp_path)
    for hook in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        (trial.workspace / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(program, trial.workspace / ".git" / "hooks" / hook)
    trial.write(".gitattributes", "* filter=shout diff=shout text=auto\n")
    trial.baseline()
    trial.write("a.txt", "two\r\n")
    text = trial.diff()
    assert "-one\n+two\r\n" in text
    assert "--- a/a.txt" in text
    assert not (tmp_path / "ran").exists()


def test_configuration_of_the_user_is_not_obeyed(trial, git, tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    config = tmp_path / "home" / ".gitconfig"
    config.parent.mkdir()
    config.write_text(
        f"[diff]\nexternal = {program}\nnoprefix = true\n[core]\nautocrlf = true\nfsmonitor = {program}\n"
        f"hooksPath = {tmp_path}\n[color]\nui = always\n"
    )
    monkeypatch.setenv("HOME", str(config.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u0")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    trial.write("a.txt", "one\nsame\n")
    trial.baseline()
    trial.write("a.txt", "two\nsame\n")
    assert "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+two\n same\n" in trial.diff()
    assert not (tmp_path / "ran").exists()


def test_a_deleted_workspace(trial):
    trial.write("a.txt", "one\n")
    trial.baseline()
    shutil.rmtree(trial.workspace)
    assert trial.snapshots.capture().diff.error == "the workspace directory no longer exists"


def test_a_workspace_that_was_made_again(trial):
    trial.write("a.txt", "one\n")
    trial.baseline()
    shutil.rmtree(trial.workspace)
    trial.workspace.mkdir()
    assert "-one\n" in trial.diff()


def test_a_workspace_replaced_by_a_link(trial, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    trial.baseline()
    trial.workspace.rmdir()
    trial.workspace.symlink_to(tmp_path / "elsewhere")
    assert trial.snapshots.capture().diff.error == "the workspace directory no longer exists"


def test_a_workspace_reached_through_a_link(trial, tmp_path):
    (tmp_path / "alias").symlink_to(trial.workspace)
    snapshots = Snapshotter(tmp_path / "alias", tmp_path / "private")
    before = snapshots.baseline()
    trial.write("a.txt", "x\n")
    assert "+x\n" in snapshots.diff(before, snapshots.final()).text


def test_pipes_and_sockets_are_left_out(trial):
    trial.write("was-file", "one\n")
    trial.write("dir/also", "one\n")
    trial.baseline()
    os.mkfifo(trial.workspace / "pipe")
    (trial.workspace / "was-file").unlink()
    os.mkfifo(trial.workspace / "was-file")
    (trial.workspace / "dir" / "also").unlink()
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory() as short:
        # The path of a socket is limited to about 100 bytes.
        listener.bind(f"{short}/s")
        Path(short, "s").rename(trial.workspace / "dir" / "also")
        text = trial.diff()
    assert text.count("deleted file mode 100644") == 2
    assert text.count("diff --git") == 2
    assert trial.snapshots.warnings() == []


@pytest.mark.parametrize("name", [".gitignore", "deep/.gitignore", "deep/.gitattributes", "nested/.git/HEAD"])
def test_a_pipe_that_git_would_wait_for(make_trial, git, name):
    trial = make_trial(limits=Limits(timeout=60, patience=0.1))
    (trial.workspace / "nested").mkdir()
    trial.write("deep/a.txt", "one\n")
    trial.baseline()
    git("init", "-q", cwd=trial.workspace / "nested")
    trial.write("deep/a.txt", "two\n")
    (trial.workspace / name).unlink(missing_ok=True)
    os.mkfifo(trial.workspace / name)
    error = trial.snapshots.capture().diff.error
    assert error.endswith(f"cannot read '{trial.workspace / name}': not a regular file")


def swap_file_and_directory(path):
    (path / "file").unlink()
    (path / "file").mkdir()
    (path / "file" / "inner").write_text("in\n")
    shutil.rmtree(path / "dir")
    (path / "dir").write_text("out\n")


def swap_directory_for_link_inside(path):
    (path / "dir").rename(path / "moved")
    (path / "dir").symlink_to("moved")


def swap_file_for_link(path):
    (path / "file").unlink()
    (path / "file").symlink_to("dir/x")


def empty_in_place_of_file(path):
    (path / "file").unlink()
    (path / "file").mkdir()


def ignored_link_in_place_of_directory(path):
    (path / ".gitignore").write_text("dir\n")
    swap_directory_for_link_inside(path)


SWAPS = [
    (swap_file_and_directory, {"file": "D", "file/inner": "A", "dir/x": "D", "dir/y": "D", "dir": "A"}),
    (swap_directory_for_link_inside, {"dir/x": "D", "dir/y": "D", "dir": "A", "moved/x": "A", "moved/y": "A"}),
    (swap_file_for_link, {"file": "T"}),
    (empty_in_place_of_file, {"file": "D"}),
    (
        ignored_link_in_place_of_directory,
        {".gitignore": "A", "dir/x": "D", "dir/y": "D", "moved/x": "A", "moved/y": "A"},
    ),
]


@pytest.mark.parametrize(("swap", "expected"), SWAPS)
def test_kinds_that_change(trial, swap, expected):
    trial.write("file", "one\n")
    trial.write("dir/x", "x\n")
    trial.write("dir/y", "y\n")
    trial.baseline()
    swap(trial.workspace)
    found = {}
    for block in trial.diff().split("diff --git ")[1:]:
        name = block.split("\n")[0].split(" b/")[1]
        kind = "A" if "new file mode" in block else "D"
        found[name] = "T" if name in found else kind
    assert found == expected


def test_a_directory_replaced_by_a_link_that_leaves_the_workspace(trial, tmp_path):
    trial.write("dir/x", "mine\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("secret\n")
    trial.baseline()
    shutil.rmtree(trial.workspace / "dir")
    (trial.workspace / "dir").symlink_to(tmp_path / "outside")
    text = trial.diff()
    assert "secret" not in text
    assert "-mine\n" in text
    assert "new file mode 120000" in text


def test_two_directories_that_trade_places(trial):
    trial.write("one/x", "1\n")
    trial.write("two/x", "2\n")
    for name in ("one", "two"):
        os.utime(trial.workspace / name / "x", (1_000_000_000, 1_000_000_000))
    trial.baseline()
    (trial.workspace / "one").rename(trial.workspace / "three")
    (trial.workspace / "two").rename(trial.workspace / "one")
    (trial.workspace / "three").rename(trial.workspace / "two")
    text = trial.diff()
    assert "-1\n+2\n" in text
    assert "-2\n+1\n" in text


def test_names_that_git_refuses_are_left_out_with_a_warning(trial):
    trial.write(".gitmodules", "[submodule]\n")
    trial.baseline()
    trial.write("sub/.GIT/config", "x\n")
    (trial.workspace / ".gitmodules").unlink()
    (trial.workspace / ".gitmodules").symlink_to("elsewhere")
    trial.write("a.txt", "x\n")
    text = trial.diff()
    assert "b/a.txt" in text
    assert "deleted file mode 100644" in text
    assert trial.snapshots.warnings() == [
        "'.gitmodules' is not part of the diff: git refuses the name",
        "'sub/.GIT/config' is not part of the diff: git refuses the name",
    ]


def test_names_of_other_systems_are_ordinary(trial):
    trial.baseline()
    for name in ("git~1/x", ".git /x", "CON", "a\\b"):
        trial.write(name, "x\n")
    assert trial.diff().count("new file mode") == 4


@pytest.fixture
def unprivileged():
    """A directory of a user without privileges, and that user's identity for the rest of the test."""
    directory = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(directory, 65534, 65534)
        os.seteuid(65534)
    try:
        yield directory
    finally:
        for path, names, _ in os.walk(directory):
            for name in names:
                Path(path, name).chmod(0o755)
        if is_root:
            os.seteuid(0)
        shutil.rmtree(directory)


def unreadable_file(path):
    (path / "a.txt").write_text("two\n")
    (path / "a.txt").chmod(0)


def unreadable_new_file(path):
    (path / "new.txt").write_text("x\n")
    (path / "new.txt").chmod(0)


def unreadable_directory(path):
    (path / "dir").chmod(0)


def unreadable_new_directory(path):
    (path / "new").mkdir(mode=0)


def unreadable_rules(path):
    (path / ".gitignore").write_text("x\n")
    (path / ".gitignore").chmod(0)


@pytest.mark.parametrize(
    ("forbid", "name"),
    [
        (unreadable_file, "a.txt"),
        (unreadable_new_file, "new.txt"),
        (unreadable_directory, "dir/b.txt"),
        (unreadable_new_directory, "new/"),
        (unreadable_rules, ".gitignore"),
    ],
)
def test_what_cannot_be_read_is_said(unprivileged, forbid, name):
    workspace = unprivileged / "workspace"
    (workspace / "dir").mkdir(parents=True)
    (workspace / "a.txt").write_text("one\n")
    (workspace / "dir" / "b.txt").write_text("one\n")
    snapshots = Snapshotter(workspace, unprivileged / "private")
    snapshots.baseline()
    forbid(workspace)
    error = snapshots.capture().diff.error
    assert name in error
    assert "Permission denied" in error


def test_a_workspace_of_another_owner(trial, git):
    repository(git, trial)
    nested = trial.workspace / "nested"
    nested.mkdir()
    git("init", "-q", cwd=nested)
    if os.geteuid() == 0:
        for path in [trial.workspace, *trial.workspace.rglob("*")]:
            os.chown(path, 12345, 12345)
    trial.baseline()
    trial.write("a.txt", "two\n")
    assert "-one\n+two\n" in trial.diff()


def test_a_path_too_long_for_git_is_said(trial):
    trial.baseline()
    start = Path.cwd()
    try:
        os.chdir(trial.workspace)
        for _ in range(25):
            Path("d" * 200).mkdir()
            os.chdir("d" * 200)
        Path("f").write_text("x")
    finally:
        os.chdir(start)
    capture = trial.snapshots.capture()
    assert capture.diff.text is None
    assert "\n" not in capture.diff.error
    # The standard library cannot remove such a path either, unless from within.
    remove_from_within(trial.workspace, start)


def remove_from_within(root, start):
    try:
        os.chdir(root)
        while Path("d" * 200).is_dir():
            os.chdir("d" * 200)
        Path("f").unlink()
        for _ in range(25):
            os.chdir("..")
            Path("d" * 200).rmdir()
    finally:
        os.chdir(start)


def test_a_private_directory_that_cannot_be_written(trial, tmp_path):
    (tmp_path / "blocked").write_text("a file")
    snapshots = Snapshotter(trial.workspace, tmp_path / "blocked" / "private")
    with pytest.raises(SnapshotError, match="cannot write to"):
        snapshots.baseline()
