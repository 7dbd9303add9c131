"""Nested repositories are gitlinks, whatever state they are in."""

from __future__ import annotations

import os
import shutil

import pytest

NO_COMMIT = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def commit(git, path, name="f.txt"):
    (path / name).write_text(name)
    git("add", "-A", cwd=path)
    git("commit", "-q", "-m", name, cwd=path)
    return git("rev-parse", "HEAD", cwd=path).strip()


def make_repository(git, path):
    path.mkdir(parents=True)
    git("init", "-q", "-b", "main", cwd=path)
    return commit(git, path)


def test_a_new_nested_repository(trial, git):
    trial.baseline()
    head = make_repository(git, trial.workspace / "deep" / "sub")
    text = trial.diff()
    assert "new file mode 160000" in text
    assert f"+Subproject commit {head}\n" in text
    assert "f.txt" not in text


def test_a_commit_in_a_nested_repository(trial, git):
    first = make_repository(git, trial.workspace / "sub")
    trial.baseline()
    assert trial.diff() == ""
    second = commit(git, trial.workspace / "sub", "g.txt")
    assert f"-Subproject commit {first}\n+Subproject commit {second}\n" in trial.diff()


def test_uncommitted_work_in_a_nested_repository_is_invisible(trial, git):
    make_repository(git, trial.workspace / "sub")
    trial.baseline()
    trial.write("sub/f.txt", "changed")
    assert trial.diff() == ""


def test_a_nested_repository_without_commits(trial, git):
    trial.baseline()
    (trial.workspace / "sub").mkdir()
    git("init", "-q", cwd=trial.workspace / "sub")
    trial.write("sub/f.txt", "x")
    trial.write("beside.txt", "x\n")
    text = trial.diff()
    assert f"+Subproject commit {NO_COMMIT}\n" in text
    assert "b/beside.txt" in text


def detach(git, path):
    git("checkout", "-q", "--detach", cwd=path)


def pack(git, path):
    git("pack-refs", "--all", cwd=path)


def unchanged(git, path):
    pass


@pytest.mark.parametrize("prepare", [detach, pack, unchanged])
def test_ways_to_name_the_checked_out_commit(trial, git, prepare):
    trial.baseline()
    head = make_repository(git, trial.workspace / "sub")
    prepare(git, trial.workspace / "sub")
    assert f"+Subproject commit {head}\n" in trial.diff()


def test_a_submodule_and_a_linked_worktree(trial, git, tmp_path):
    source = tmp_path / "source"
    head = make_repository(git, source)
    git("init", "-q", cwd=trial.workspace)
    commit(git, trial.workspace, "root.txt")
    trial.baseline()
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "module", cwd=trial.workspace)
    git("worktree", "add", "-q", "-b", "other", str(trial.workspace / "tree"), cwd=source)
    newer = commit(git, trial.workspace / "tree", "g.txt")
    text = trial.diff()
    assert f"b/module\n@@ -0,0 +1 @@\n+Subproject commit {head}\n" in text
    assert f"b/tree\n@@ -0,0 +1 @@\n+Subproject commit {newer}\n" in text
    assert "b/.gitmodules" in text


def break_head(path):
    (path / ".git" / "HEAD").write_text("nonsense")


def break_config(path):
    (path / ".git" / "config").write_text("[[[")


def break_ref(path):
    (path / ".git" / "refs" / "heads" / "main").write_text("nonsense")


def point_head_outside(path):
    (path / ".git" / "HEAD").write_text("ref: ../../../etc/passwd")


def loop_head(path):
    (path / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main")


def empty_git(path):
    shutil.rmtree(path / ".git")
    (path / ".git").mkdir()


def garbage_git_file(path):
    shutil.rmtree(path / ".git")
    (path / ".git").write_text("garbage")


def dangling_git_file(path):
    shutil.rmtree(path / ".git")
    (path / ".git").write_text("gitdir: ../nowhere\n")


def git_is_a_pipe(path):
    shutil.rmtree(path / ".git")
    os.mkfifo(path / ".git")


BREAKS = [
    break_head,
    break_config,
    break_ref,
    point_head_outside,
    loop_head,
    empty_git,
    garbage_git_file,
    dangling_git_file,
    git_is_a_pipe,
]


@pytest.mark.parametrize("damage", BREAKS)
@pytest.mark.parametrize("in_baseline", [True, False])
def test_a_broken_nested_repository_fails_nothing(trial, git, damage, in_baseline):
    if in_baseline:
        make_repository(git, trial.workspace / "sub")
    trial.write("beside.txt", "one\n")
    trial.baseline()
    if not in_baseline:
        make_repository(git, trial.workspace / "sub")
    damage(trial.workspace / "sub")
    trial.write("beside.txt", "two\n")
    text = trial.diff()
    assert "-one\n+two\n" in text
    # Whether as a link without a commit or as plain files: what happened to it is not hidden.
    assert "/sub" in text or (damage is break_config and in_baseline)


def test_a_broken_gitmodules_fails_nothing(trial, git):
    first = make_repository(git, trial.workspace / "sub")
    trial.baseline()
    trial.write(".gitmodules", "[[[")
    second = commit(git, trial.workspace / "sub", "g.txt")
    assert f"-Subproject commit {first}\n+Subproject commit {second}\n" in trial.diff()


def test_gitmodules_cannot_hide_a_change(trial, git):
    make_repository(git, trial.workspace / "sub")
    trial.write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = x\n\tignore = all\n')
    trial.baseline()
    commit(git, trial.workspace / "sub", "g.txt")
    assert "Subproject commit" in trial.diff()


def test_a_nested_repository_that_loses_its_git_directory_becomes_files(trial, git):
    head = make_repository(git, trial.workspace / "sub")
    trial.baseline()
    shutil.rmtree(trial.workspace / "sub" / ".git")
    text = trial.diff()
    assert f"-Subproject commit {head}\n" in text
    assert "b/sub/f.txt" in text


def test_a_nested_repository_that_is_removed_or_replaced(trial, git):
    for name in ("gone", "file", "link"):
        make_repository(git, trial.workspace / name)
    trial.baseline()
    for name in ("gone", "file", "link"):
        shutil.rmtree(trial.workspace / name)
    trial.write("file", "now a file\n")
    (trial.workspace / "link").symlink_to("file")
    text = trial.diff()
    assert text.count("deleted file mode 160000") == 3
    assert "+now a file\n" in text
    assert "new file mode 120000" in text


def test_git_init_in_a_directory_of_the_baseline_hides_nothing(trial, git):
    trial.write("src/a.txt", "one\n")
    trial.baseline()
    git("init", "-q", cwd=trial.workspace / "src")
    trial.write("src/a.txt", "two\n")
    trial.write("src/b.txt", "new\n")
    commit(git, trial.workspace / "src", "c.txt")
    text = trial.diff()
    assert "-one\n+two\n" in text
    assert "b/src/b.txt" in text


def test_a_file_that_becomes_a_nested_repository(trial, git):
    path = trial.write("thing", "file\n")
    trial.baseline()
    path.unlink()
    head = make_repository(git, path)
    text = trial.diff()
    assert "-file\n" in text
    assert f"+Subproject commit {head}\n" in text


def test_nothing_configured_in_a_nested_repository_runs(trial, git, tmp_path, fingerprint_of):
    make_repository(git, trial.workspace / "sub")
    program = tmp_path / "monitor"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    git("config", "core.fsmonitor", str(program), cwd=trial.workspace / "sub")
    trial.write("sub/f.txt", "changed")
    seen = fingerprint_of(trial.workspace)
    trial.baseline()
    trial.snapshots.turn(0)
    trial.snapshots.final()
    assert not (tmp_path / "ran").exists()
    assert fingerprint_of(trial.workspace) == seen


def test_turns_see_commits_of_nested_repositories(trial, git):
    trial.baseline()
    first = make_repository(git, trial.workspace / "sub")
    trial.snapshots.turn(0)
    second = commit(git, trial.workspace / "sub", "g.txt")
    trial.snapshots.turn(1)
    one, two = (result.diff.text for result in trial.snapshots.turn_diffs())
    assert f"+Subproject commit {first}\n" in one
    assert f"-Subproject commit {first}\n+Subproject commit {second}\n" in two


def test_the_patch_of_gitlinks_can_be_applied(trial, git, tmp_path):
    make_repository(git, trial.workspace / "sub")
    trial.write("a.txt", "one\n")
    untouched = tmp_path / "untouched"
    shutil.copytree(trial.workspace, untouched)
    trial.baseline()
    commit(git, trial.workspace / "sub", "g.txt")
    make_repository(git, trial.workspace / "new")
    trial.write("a.txt", "two\n")
    assert trial.patched(untouched)[b"a.txt"] == ("file", b"two\n")
