"""The patch turns the baseline into the final tree, byte by byte."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vally_backend_local.git_process import SnapshotError
from vally_backend_local.snapshots import Snapshotter


def everything(root: Path) -> None:
    (root / "dir with space").mkdir()
    (root / "dir with space" / "ü ñ.txt").write_text("one\n" * 30)
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "mixed.txt").write_bytes(b"one\r\ntwo\nthree")
    (root / "binary.bin").write_bytes(bytes(range(256)) * 20)
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    (root / os.fsdecode(b"n\xff.txt")).write_bytes(b"x\n")
    (root / 'quo"te\tand\nline').write_text("x\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "gone.txt").write_text("gone\n")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "only.txt").write_text("only\n")
    (root / "link").symlink_to("gone.txt")
    (root / "swap").write_text("file\n")
    (root / "empty").touch()
    (root / ".gitattributes").write_text("* text=auto ident filter=none\n*.txt eol=crlf -diff\n")


def edit_everything(root: Path) -> None:
    (root / "dir with space" / "ü ñ.txt").write_text("one\n" * 15 + "two\n" + "one\n" * 15)
    (root / "crlf.txt").write_bytes(b"one\r\n2\r\n\r\n")
    (root / "mixed.txt").write_bytes(b"one\ntwo\r\nthree\n")
    (root / "binary.bin").write_bytes(bytes(range(255, -1, -1)) * 20)
    (root / "latin.txt").write_bytes(b"caf\xe9s\xff\n")
    (root / os.fsdecode(b"n\xff.txt")).write_bytes(b"y")
    (root / 'quo"te\tand\nline').write_text("y\n")
    (root / "run.sh").chmod(0o755)
    (root / "gone.txt").unlink()
    shutil.rmtree(root / "deep")
    (root / "link").unlink()
    (root / "link").symlink_to("../outside")
    (root / "swap").unlink()
    (root / "swap").symlink_to("run.sh")
    (root / "empty").unlink()
    (root / "new dir" / "a").mkdir(parents=True)
    (root / "new dir" / "a" / "new.bin").write_bytes(b"\0" * 5000)
    (root / "new dir" / "empty").touch()
    (root / "trailing ").write_text("$Id$ \n")


def test_every_kind_of_change(trial, tmp_path, contents_of):
    everything(trial.workspace)
    untouched = tmp_path / "untouched"
    shutil.copytree(trial.workspace, untouched, symlinks=True)
    trial.baseline()
    edit_everything(trial.workspace)
    # Or else git itself would convert what it writes.
    assert trial.patched(untouched, "* -text -ident -filter\n") == contents_of(trial.workspace)


def test_a_filter_and_line_ends_named_by_attributes(trial, git, tmp_path, contents_of):
    git("init", "-q", cwd=trial.workspace)
    git("config", "filter.shout.clean", f"touch {tmp_path}/ran; tr a-z A-Z", cwd=trial.workspace)
    git("config", "filter.shout.required", "true", cwd=trial.workspace)
    trial.write(".gitattributes", "* text=auto filter=shout\n")
    trial.write("a.txt", "one\r\ntwo\r\n")
    untouched = tmp_path / "untouched"
    shutil.copytree(trial.workspace, untouched, ignore=shutil.ignore_patterns(".git"))
    trial.baseline()
    trial.write("a.txt", "one\r\nzwei\r\n")
    assert trial.patched(untouched) == contents_of(trial.workspace)
    assert not (tmp_path / "ran").exists()


def test_no_change_makes_no_file(trial, tmp_path):
    trial.write("a.txt", "x\n")
    trial.baseline()
    assert trial.snapshots.patch(trial.before, trial.snapshots.final(), tmp_path / "p") == 0
    assert not (tmp_path / "p").exists()


def test_the_capture_writes_the_patch_beside_the_diff(trial, tmp_path):
    trial.baseline()
    trial.write("a.bin", b"\0one")
    capture = trial.snapshots.capture(tmp_path / "workspace.patch")
    patch = (tmp_path / "workspace.patch").read_bytes()
    assert capture.patch_bytes == len(patch)
    assert b"GIT binary patch" in patch
    assert b"index " + b"0" * 40 + b".." in patch
    assert "Binary files" in capture.diff.text


def test_a_failed_patch_leaves_no_file(trial, tmp_path):
    trial.baseline()
    with pytest.raises(SnapshotError, match="git diff-tree failed"):
        trial.snapshots.patch(trial.before, "1" * 40, tmp_path / "p")
    assert not (tmp_path / "p").exists()
    with pytest.raises(SnapshotError, match="cannot write"):
        trial.snapshots.patch(trial.before, "1" * 40, tmp_path / "absent" / "p")


NAMES = st.sampled_from(["a", "b", "c d", "é", "x.txt", 'q"', "t\tb", "試"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"one\n", b"two\r\n", b"three", b"\0", b"\xff\n", b"\n"]), max_size=12).map(b"".join),
)
# `git apply` itself fails on a directory in the place of a link that leads to itself or to an existing directory.
TARGETS = st.sampled_from([b"nowhere", b"../outside", b"/absent/with space", "goal é".encode()])
LEAVES = st.one_of(
    st.tuples(st.just("file"), CONTENTS),
    st.tuples(st.just("program"), CONTENTS),
    st.tuples(st.just("link"), TARGETS),
)
TREES = st.dictionaries(PATHS, LEAVES, max_size=6)


def make(root: Path, tree: dict[str, tuple[str, bytes]]) -> None:
    """Write what fits: a path below another leaf is left out."""
    for name, (kind, content) in sorted(tree.items()):
        path = root / name
        parents = [parent for parent in path.parents if parent.is_relative_to(root)]
        if any(parent.is_symlink() or parent.is_file() for parent in parents) or os.path.lexists(path):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            path.symlink_to(os.fsdecode(content))
        else:
            path.write_bytes(content)
            path.chmod(0o755 if kind == "program" else 0o644)


def clear(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TREES, after=TREES, kept=st.sets(st.integers(0, 5)))
def test_random_trees_and_edits(before, after, kept, git, contents_of):
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        workspace, untouched = base / "workspace", base / "untouched"
        workspace.mkdir()
        make(workspace, before)
        shutil.copytree(workspace, untouched, symlinks=True)
        snapshots = Snapshotter(workspace, base / "private")
        first = snapshots.baseline()
        clear(workspace)
        # Some paths stay what they were, so that edits meet unchanged neighbours.
        make(workspace, {**after, **{name: before[name] for n, name in enumerate(sorted(before)) if n in kept}})
        last = snapshots.final()
        if snapshots.patch(first, last, base / "patch"):
            git("init", "-q", cwd=untouched)
            git("apply", "--whitespace=nowarn", str(base / "patch"), cwd=untouched)
        assert contents_of(untouched) == contents_of(workspace)
        assert (snapshots.diff(first, last).text == "") == (first == last)


def test_permissions_other_than_the_executable_bit_are_no_change(trial):
    path = trial.write("a.txt", "x\n")
    path.chmod(0o644)
    trial.baseline()
    path.chmod(0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert trial.diff() == ""
