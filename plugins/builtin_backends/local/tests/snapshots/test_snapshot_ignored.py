"""Which .gitignore rules apply, and what happens when the agent edits them."""

from __future__ import annotations


def test_ignored_files_are_invisible(trial):
    trial.write(".gitignore", "*.log\nbuild/\n")
    trial.write("sub/.gitignore", "local.txt\n")
    trial.baseline()
    trial.write("a.log", "x\n")
    trial.write("build/out.txt", "x\n")
    trial.write("sub/local.txt", "x\n")
    trial.write("local.txt", "seen\n")
    assert trial.diff().count("diff --git") == 1
    assert "b/local.txt" in trial.diff()


def test_a_baseline_file_that_becomes_ignored_stays(trial):
    trial.write("a.txt", "one\n")
    trial.write("out/b.txt", "one\n")
    trial.baseline()
    trial.write(".gitignore", "a.txt\nout/\n")
    trial.write("a.txt", "two\n")
    trial.write("out/b.txt", "two\n")
    trial.write("out/c.txt", "new and ignored\n")
    text = trial.diff()
    assert "b/a.txt" in text
    assert "b/out/b.txt" in text
    assert "out/c.txt" not in text


def test_a_baseline_file_that_was_deleted_and_comes_back_ignored(trial):
    path = trial.write("a.txt", "one\n")
    trial.baseline()
    path.unlink()
    trial.snapshots.turn(0)
    trial.write(".gitignore", "a.txt\n")
    trial.write("a.txt", "two\n")
    trial.snapshots.turn(1)
    assert "-one\n+two\n" in trial.diff()
    first, second = (result.diff.text for result in trial.snapshots.turn_diffs())
    assert "-one\n" in first
    assert "+two\n" in second


def test_a_rule_that_the_agent_removes_shows_what_it_hid(trial):
    path = trial.write(".gitignore", "hidden.txt\n")
    trial.write("hidden.txt", "x\n")
    trial.baseline()
    path.unlink()
    assert "b/hidden.txt" in trial.diff()


def test_the_final_tree_does_not_depend_on_turn_snapshots(make_trial):
    texts = []
    for with_turns in (False, True):
        trial = make_trial()
        trial.baseline()
        trial.write("scratch.tmp", "x\n")
        if with_turns:
            trial.snapshots.turn(0)
        trial.write(".gitignore", "*.tmp\n")
        if with_turns:
            trial.snapshots.turn(1)
        texts.append(trial.diff())
    assert texts[0] == texts[1]
    assert "scratch" not in texts[0]


def test_excludes_of_the_user_and_of_the_repository_do_not_apply(trial, git, tmp_path, monkeypatch):
    excludes = tmp_path / "home" / ".config" / "git"
    excludes.mkdir(parents=True)
    (excludes / "ignore").write_text("*\n")
    (tmp_path / "home" / ".gitconfig").write_text(f"[core]\nexcludesFile = {excludes / 'ignore'}\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    git("init", "-q", cwd=trial.workspace)
    (trial.workspace / ".git" / "info" / "exclude").write_text("*\n")
    trial.baseline()
    trial.write("a.txt", "x\n")
    assert "b/a.txt" in trial.diff()


def test_rules_of_a_parent_directory_do_not_apply(trial, git, tmp_path):
    git("init", "-q", cwd=tmp_path)
    (tmp_path / ".gitignore").write_text("*\n")
    trial.baseline()
    trial.write("a.txt", "x\n")
    assert "b/a.txt" in trial.diff()


def test_a_gitignore_that_is_a_link_is_not_followed(trial, tmp_path):
    (tmp_path / "rules").write_text("*\n")
    trial.baseline()
    (trial.workspace / ".gitignore").symlink_to(tmp_path / "rules")
    trial.write("a.txt", "x\n")
    assert "b/a.txt" in trial.diff()
