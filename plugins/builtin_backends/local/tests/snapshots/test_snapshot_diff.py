"""The text of a diff: its form, its names, what attributes cannot change, and its limit."""

from __future__ import annotations

import os

import pytest

from vally_backend_local.patches import MAX_DIFF_BYTES


@pytest.mark.parametrize("_", [pytest.param(None, id="SD-3")])
def test_no_change_gives_an_empty_diff(trial, _):
    trial.write("a.txt", "one\n")
    trial.baseline()
    assert trial.diff() == ""


def test_an_edit_has_three_context_lines_and_plain_prefixes(trial):
    trial.write("dir/a.txt", "".join(f"{n}\n" for n in range(1, 12)))
    trial.baseline()
    trial.write("dir/a.txt", "".join("six\n" if n == 6 else f"{n}\n" for n in range(1, 12)))
    lines = trial.diff().split("\n")
    assert lines[0] == "diff --git a/dir/a.txt b/dir/a.txt"
    assert lines[1].startswith("index ")
    assert lines[2:] == [
        "--- a/dir/a.txt",
        "+++ b/dir/a.txt",
        "@@ -3,7 +3,7 @@",
        " 3",
        " 4",
        " 5",
        "-6",
        "+six",
        " 7",
        " 8",
        " 9",
        "",
    ]


def test_new_and_deleted_files(trial):
    trial.write("old.txt", "gone\n")
    trial.baseline()
    (trial.workspace / "old.txt").unlink()
    trial.write("new.txt", "fresh\n")
    text = trial.diff()
    assert "new file mode 100644" in text
    assert "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+fresh\n" in text
    assert "deleted file mode 100644" in text
    assert "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n" in text


def test_a_rename_is_a_deletion_and_an_addition(trial):
    path = trial.write("before.txt", "same content\n" * 20)
    trial.baseline()
    path.rename(trial.workspace / "after.txt")
    text = trial.diff()
    assert "rename" not in text
    assert text.count("\n-same content") == 20
    assert text.count("\n+same content") == 20


def test_line_ends_stay(trial):
    trial.write(".gitattributes", "* text=auto eol=lf\n")
    trial.write("a.txt", "one\r\ntwo\r\n")
    trial.baseline()
    trial.write("a.txt", "one\r\n2\r\n")
    assert " one\r\n-two\r\n+2\r\n" in trial.diff()


def test_a_change_of_line_ends_alone_is_seen(trial):
    trial.write("a.txt", "one\r\n")
    trial.baseline()
    trial.write("a.txt", "one\n")
    assert "-one\r\n+one\n" in trial.diff()


def test_binary_content(trial):
    trial.write("a.bin", b"\0\1\2")
    trial.baseline()
    trial.write("a.bin", b"\0\1\3")
    assert trial.diff().endswith("Binary files a/a.bin and b/a.bin differ\n")


def test_content_that_is_not_utf8_gets_replacement_characters(trial):
    trial.write("a.txt", b"caf\xe9\n")
    trial.baseline()
    trial.write("a.txt", b"caf\xe9s\n")
    assert "-caf\ufffd\n+caf\ufffds\n" in trial.diff()


@pytest.mark.parametrize(
    "name", ["with space.txt", "試験.txt", "Prüfung/é.txt", "-dash.txt", ":(top)x", "[a]*?.txt", "#x"]
)
def test_names_are_unquoted(trial, name):
    trial.baseline()
    trial.write(name, "x\n")
    assert f"diff --git a/{name} b/{name}\n" in trial.diff()


@pytest.mark.parametrize(
    ("name", "shown"),
    [('quo"te', r"quo\"te"), ("ta\tb", r"ta\tb"), ("back\\slash", r"back\\slash"), ("line\n+forged", r"line\n+forged")],
)
def test_names_that_would_break_a_header_are_quoted_by_git(trial, name, shown):
    trial.baseline()
    trial.write(name, "x\n")
    text = trial.diff()
    assert f'diff --git "a/{shown}" "b/{shown}"\n' in text
    assert "\n+forged" not in text


def test_a_name_that_is_not_utf8(trial):
    trial.baseline()
    (trial.workspace / os.fsdecode(b"n\xff.txt")).write_text("x\n")
    assert "+++ b/n\ufffd.txt\n" in trial.diff()


def test_links_show_their_target_and_are_never_followed(trial, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret\n")
    trial.baseline()
    (trial.workspace / "leaves").symlink_to(tmp_path / "outside")
    (trial.workspace / "dangles").symlink_to("nowhere")
    text = trial.diff()
    assert text.count("new file mode 120000") == 2
    assert f"+{tmp_path / 'outside'}\n" in text
    assert "+nowhere\n" in text
    assert "secret.txt" not in text


def test_mode_changes(trial):
    path = trial.write("run.sh", "#!/bin/sh\n")
    path.chmod(0o644)
    trial.baseline()
    path.chmod(0o755)
    assert "old mode 100644\nnew mode 100755\n" in trial.diff()


def test_empty_directories_are_invisible(trial):
    (trial.workspace / "was").mkdir()
    trial.baseline()
    (trial.workspace / "was").rmdir()
    (trial.workspace / "is" / "deep").mkdir(parents=True)
    assert trial.diff() == ""


@pytest.mark.parametrize(
    "attribute", ["-diff", "binary", "diff=custom", "diff=python", "-text", "working-tree-encoding=UTF-16"]
)
def test_attributes_of_the_workspace_change_nothing(trial, attribute):
    trial.write("a.txt", "def f():\n    one\n")
    trial.baseline()
    trial.write(".gitattributes", f"*.txt {attribute}\n")
    trial.write("a.txt", "def f():\n    two\n")
    assert "-    one\n+    two\n" in trial.diff()


def test_keywords_are_not_expanded(trial):
    trial.write(".gitattributes", "* ident\n")
    trial.write("a.txt", "$Id: one $\n")
    trial.baseline()
    trial.write("a.txt", "$Id: two $\n")
    assert "-$Id: one $\n+$Id: two $\n" in trial.diff()


@pytest.mark.parametrize("excess", [0, 1])
def test_a_diff_at_and_above_the_limit(make_trial, excess):
    measured = make_trial()
    measured.baseline()
    measured.write("big.txt", b"caf\xe9\n" * 1000)
    size = len(measured.diff().encode())

    trial = make_trial(max_diff_bytes=size - excess)
    trial.baseline()
    trial.write("big.txt", b"caf\xe9\n" * 1000)
    result = trial.snapshots.diff(trial.before, trial.snapshots.final())
    assert result.size == size
    if excess:
        assert result.text is None
        assert result.error == f"diff has {size} bytes, at most {size - 1} are kept"
    else:
        assert result.text is not None
        assert result.error is None


def test_the_limit_is_64_mib(trial):
    assert MAX_DIFF_BYTES == 67_108_864
    trial.baseline()
    trial.write("big.txt", b"x" * 1023 + b"\n" + (b"y" * 1023 + b"\n") * (65 << 10))
    capture = trial.snapshots.capture(trial.private / "workspace.patch")
    assert capture.diff.text is None
    assert capture.diff.error == f"diff has {capture.diff.size} bytes, at most 67108864 are kept"
    assert capture.diff.size > 65 << 20
    assert not (trial.private / "workspace.patch").exists()


def test_a_diff_of_unknown_trees_is_an_error_in_the_result(trial):
    trial.baseline()
    result = trial.snapshots.diff(trial.before, "1" * 40)
    assert result.text is None
    assert "1111111111" in result.error
    assert "\n" not in result.error
