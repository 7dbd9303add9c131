"""Repositories as workspaces: what the agent can find there, and that the user's own is never written."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from vally import Environment, GitSource
from vally.testing import ScriptedExecutor, tree_digest

IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(cwd: Path, *args: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", *args],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **IDENTITY},
        check=check,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three commits on `main` with tags `v0` to `v2`, a branch `side` beside them, and changes not committed."""
    root = tmp_path / "source"
    (root / "sub").mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    for number in range(3):
        (root / "a.txt").write_text(f"version {number}\n")
        (root / "sub" / f"{number}.txt").write_text(f"secret of commit {number}\n")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", f"commit {number}")
        git(root, "tag", f"v{number}")
    git(root, "tag", "--annotate", "--message", "annotated", "big-v1", "v1")
    git(root, "switch", "--quiet", "--create", "side", "v0")
    (root / "side.txt").write_text("answer on another branch\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "side")
    git(root, "switch", "--quiet", "main")
    (root / "a.txt").write_text("uncommitted\n")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    (root / "untracked.txt").write_text("untracked\n")
    return root


@pytest.fixture
def explore(bench):
    """Run a trial in a repository and return what an agent can find out there."""

    def run(source: GitSource, *, expect: str = "success", **item) -> dict[str, object]:
        found: dict[str, object] = {}

        def look(_, options):
            workspace = options.work_dir
            found["files"] = bench.files_below(workspace)
            found["log"] = git(workspace, "log", "--all", "--format=%s").splitlines()
            found["status"] = git(workspace, "status", "--short")
            found["branches"] = git(workspace, "for-each-ref", "--format=%(refname)").splitlines()
            found["head"] = git(workspace, "rev-parse", "--abbrev-ref", "HEAD")
            found["remotes"] = git(workspace, "remote")
            found["reflog"] = git(workspace, "reflog", "--all")
            found["alternates"] = (workspace / ".git/objects/info/alternates").exists()
            found["hooks"] = (workspace / ".git" / "hooks").exists()
            found["fsck"] = git(workspace, "fsck", "--lost-found", "--full", "--strict")
            listed = git(workspace, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
            found["objects"] = "\n".join(git(workspace, "cat-file", "-p", name) for name in listed)
            found["commits"] = git(workspace, "rev-list", "--all", "--count")

        environment = Environment(git=source)
        outcome = bench.run(
            bench.stimulus(bench.diff_has(), environment=environment), ScriptedExecutor([look]), item=item
        )
        assert outcome.status == expect, outcome.error
        found["outcome"] = outcome
        return found

    return run


def sources(source: Path) -> dict[str, GitSource]:
    return {
        "worktree": GitSource(type="worktree", source=source, ref="v1"),
        "clone": GitSource(type="clone", url=str(source), ref="v1"),
        "file url": GitSource(type="clone", url=f"file://{source}", ref="v1"),
    }


@pytest.mark.parametrize("kind", ["worktree", "clone", "file url"])
def test_only_the_past_can_be_found(source: Path, explore, kind: str) -> None:
    before = tree_digest(source)
    found = explore(sources(source)[kind])
    assert found["files"] == {
        "a.txt": "version 1\n",
        "sub/0.txt": "secret of commit 0\n",
        "sub/1.txt": "secret of commit 1\n",
    }
    assert (found["log"], found["status"], found["head"]) == (["commit 1", "commit 0"], "", "main")
    assert found["branches"] == ["refs/heads/main"]
    assert (found["remotes"], found["reflog"], found["fsck"]) == ("", "", "")
    assert not found["alternates"]
    assert not found["hooks"]
    assert "secret of commit 1" in found["objects"]
    assert "secret of commit 2" not in found["objects"]
    assert "answer on another branch" not in found["objects"]
    assert "staged" not in found["objects"]
    assert found["outcome"].trajectory.diff == ""
    assert tree_digest(source) == before


@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_no_history_is_a_single_commit(source: Path, explore, kind: str) -> None:
    given = sources(source)[kind]
    found = explore(GitSource(type=given.type, source=given.source, url=given.url, ref="v2", history="none"))
    assert found["log"] == ["Initial commit"]
    assert found["files"]["a.txt"] == "version 2\n"
    assert "version 1" not in found["objects"]
    assert "commit 2" not in found["objects"].replace("secret of commit 2", "")
    assert (found["fsck"], found["status"], found["head"]) == ("", "", "main")


def test_all_history_has_every_branch_and_tag(source: Path, explore) -> None:
    before = tree_digest(source)
    found = explore(GitSource(type="worktree", source=source, history="all"))
    assert set(found["log"]) == {"commit 0", "commit 1", "commit 2", "side"}
    assert found["head"] == "main"
    assert {"refs/heads/main", "refs/heads/side", "refs/tags/v0", "refs/tags/big-v1"} <= set(found["branches"])
    assert not found["alternates"]
    assert (found["remotes"], found["reflog"], found["fsck"]) == ("", "", "")
    assert "answer on another branch" in found["objects"]
    assert found["files"]["a.txt"] == "version 2\n"
    assert tree_digest(source) == before


def test_all_history_of_a_clone_has_its_own_objects(source: Path, explore) -> None:
    found = explore(GitSource(type="clone", url=str(source), ref="side", history="all"))
    assert (found["head"], found["alternates"], found["remotes"]) == ("side", False, "")
    assert set(found["log"]) == {"commit 0", "commit 1", "commit 2", "side"}


def test_all_history_at_a_tag_is_detached(source: Path, explore) -> None:
    found = explore(GitSource(type="worktree", source=source, ref="v0", history="all"))
    assert found["head"] == "HEAD"
    assert found["files"]["a.txt"] == "version 0\n"


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (None, "version 2\n"),
        ("main", "version 2\n"),
        ("v0", "version 0\n"),
        ("big-v1", "version 1\n"),
        ("refs/tags/v0", "version 0\n"),
        ("full", "version 1\n"),
        ("short", "version 1\n"),
    ],
)
@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_every_form_of_ref(source: Path, explore, kind: str, ref: str | None, expected: str) -> None:
    commit = git(source, "rev-parse", "v1")
    ref = {"full": commit, "short": commit[:8]}.get(ref, ref)
    given = sources(source)[kind]
    found = explore(GitSource(type=given.type, source=given.source, url=given.url, ref=ref))
    assert found["files"]["a.txt"] == expected
    assert found["branches"] == ["refs/heads/main"]


def test_a_relative_revision_of_a_worktree(source: Path, explore) -> None:
    assert explore(GitSource(type="worktree", source=source, ref="HEAD~2"))["log"] == ["commit 0"]


def test_a_shallow_clone_has_one_commit(source: Path, explore) -> None:
    found = explore(GitSource(type="clone", url=f"file://{source}", shallow=True))
    assert found["log"] == ["commit 2"]
    assert "version 1" not in found["objects"]
    assert found["fsck"] == ""


def test_a_sparse_clone_has_some_directories(source: Path, explore) -> None:
    (source / "other").mkdir()
    (source / "other" / "x.txt").write_text("x")
    git(source, "add", "other")
    git(source, "commit", "--quiet", "--message", "other", "--", "other")
    found = explore(GitSource(type="clone", url=str(source), sparse=("other",)))
    assert sorted(found["files"]) == ["a.txt", "other/x.txt"]
    assert (found["status"], found["outcome"].trajectory.diff) == ("", "")


def test_the_root_of_the_repository_is_the_workspace(source: Path, explore) -> None:
    assert "a.txt" in explore(GitSource(type="worktree", source=source / "sub"))["files"]


def test_the_spec_directory_is_the_default_source(source: Path, explore) -> None:
    assert "a.txt" in explore(GitSource(type="worktree"), spec_dir=source / "sub")["files"]


def test_a_linked_worktree_is_a_source(source: Path, explore, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(source, "worktree", "add", "--quiet", "--detach", str(linked), "v1")
    before = tree_digest(source), tree_digest(linked)
    assert explore(GitSource(type="worktree", source=linked))["log"] == ["commit 1", "commit 0"]
    assert (tree_digest(source), tree_digest(linked)) == before


def test_a_bare_repository_is_a_source(source: Path, explore, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(source), "bare.git")
    before = tree_digest(tmp_path / "bare.git")
    found = explore(GitSource(type="worktree", source=tmp_path / "bare.git", ref="v1"))
    assert found["log"] == ["commit 1", "commit 0"]
    assert tree_digest(tmp_path / "bare.git") == before


@pytest.mark.parametrize("kind", ["worktree", "clone"])
@pytest.mark.parametrize("history", ["ref", "none", "all"])
def test_a_shallow_repository_is_a_source(source: Path, explore, tmp_path: Path, kind: str, history: str) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=2", "--no-single-branch", f"file://{source}", "shallow")
    shallow = tmp_path / "shallow"
    given = GitSource(type="worktree", source=shallow, history=history)
    if kind == "clone":
        given = GitSource(type="clone", url=f"file://{shallow}", history=history)
    found = explore(given)
    assert found["files"]["a.txt"] == "version 2\n"
    assert found["status"] == ""
    if history == "ref":
        assert found["log"] == git(shallow, "log", "--format=%s").splitlines()


def test_borrowed_objects_are_found(source: Path, explore, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", "--no-checkout", str(source), "borrower")
    alternates = tmp_path / "borrower" / ".git" / "objects" / "info" / "alternates"
    alternates.write_text("../../../source/.git/objects\n")
    found = explore(GitSource(type="worktree", source=tmp_path / "borrower"))
    assert found["log"] == ["commit 2", "commit 1", "commit 0"]


def test_submodules_are_left_empty(source: Path, explore, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "outer")
    outer = tmp_path / "outer"
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "inner")
    git(outer, "commit", "--quiet", "--message", "outer")
    before = tree_digest(outer)
    found = explore(GitSource(type="worktree", source=outer / "inner", ref="v0"))
    assert found["log"] == ["commit 0"]
    found = explore(GitSource(type="worktree", source=outer))
    assert list(found["files"]) == [".gitmodules"]
    assert tree_digest(outer) == before


def test_no_filter_hook_or_setting_of_the_user_runs(source: Path, explore, bench, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {trap}\n")
        (hooks / name).chmod(0o755)
    filter_ = f"sh -c 'echo filter >> {trap}; cat'"
    settings = (
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {hooks}/fsmonitor\n\tautocrlf = true\n"
        f'[filter "lfs"]\n\tclean = {filter_}\n\tsmudge = {filter_}\n\trequired = true\n'
        f"[init]\n\ttemplateDir = {hooks}\n[alias]\n\tfetch = !echo alias >> {trap}\n"
    )
    (source / ".gitattributes").write_text("*.txt filter=lfs\n")
    git(source, "add", ".gitattributes")
    git(source, "commit", "--quiet", "--message", "attributes", "--", ".gitattributes")
    (tmp_path / ".gitconfig").write_text(settings)
    with (source / ".git" / "config").open("a") as file:
        file.write(settings)
    bench.process_env["HOME"] = str(tmp_path)
    before = tree_digest(source)
    for given in (GitSource(type="worktree", source=source), GitSource(type="clone", url=f"file://{source}")):
        found = explore(given)
        assert found["files"]["a.txt"] == "version 2\n"
    assert not trap.exists()
    assert tree_digest(source) == before


def test_an_agent_cannot_reach_the_users_repository(source: Path, bench) -> None:
    before = tree_digest(source)
    line = (
        "git checkout -q -b agent; echo x > x; git add -A; git commit -q -m x; git push origin HEAD; git push; "
        "git gc --quiet --aggressive --prune=now; git repack -a -d -q; git reflog expire --expire=now --all; "
        "git worktree prune; git remote prune origin; true"
    )

    async def work(_, options):
        await options.runner.run(["/bin/sh", "-c", line], env={**options.env, **IDENTITY})
        assert git(options.work_dir, "log", "-1", "--format=%s") == "x"

    for history in ("ref", "all"):
        environment = bench.staged(
            (source / "sub", "copied"), git=GitSource(type="worktree", source=source, history=history)
        )
        outcome = bench.run(bench.stimulus(bench.diff_has("+x"), environment=environment), ScriptedExecutor([work]))
        assert outcome.status == "success", outcome.error
        assert outcome.grade.passed
    assert tree_digest(source) == before


def test_files_are_staged_over_the_repository(source: Path, bench) -> None:
    patch = bench.project.file("a.txt", "overlaid\n")
    environment = bench.staged((patch, "a.txt"), git=GitSource(type="worktree", source=source))
    outcome = bench.run(bench.stimulus(bench.shell("cat a.txt; git status --short"), environment=environment))
    assert outcome.grade.details[0].metadata["stdout"] == "overlaid\n M a.txt"


def test_a_run_stays_with_the_commit_it_started_from(source: Path, bench) -> None:
    environment = Environment(git=GitSource(type="worktree", source=source))
    stimulus = bench.stimulus(bench.shell("git log --format=%s"), environment=environment)

    async def main(backend):
        first = await bench.attempt(backend, stimulus)
        git(source, "commit", "--quiet", "--allow-empty", "--message", "meanwhile")
        second = await bench.attempt(backend, stimulus)
        return [outcome.grade.details[0].metadata["stdout"] for outcome in (first, second)]

    first, second = bench.with_backend(main)
    assert first == second
    assert "meanwhile" not in first


def test_a_private_repository_is_built_once_per_commit(source: Path, bench) -> None:
    def names() -> list[tuple[str, int]]:
        return [(path.name, path.stat().st_ino) for path in (bench.cache / "repositories").iterdir() if path.is_dir()]

    for command in ("true", "echo again"):
        environment = Environment(git=GitSource(type="worktree", source=source, ref="v1"), commands=(command,))
        assert bench.run(bench.stimulus(environment=environment)).status == "success"
        kept = names()
    assert len(kept) == 1
    environment = Environment(git=GitSource(type="worktree", source=source / "sub", ref="HEAD~1"), commands=("pwd",))
    bench.run(bench.stimulus(environment=environment))
    assert names() == kept


@pytest.mark.parametrize("history", ["ref", "all"])
def test_objects_of_another_format(bench, explore, tmp_path: Path, history: str) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", "modern")
    modern = tmp_path / "modern"
    (modern / "a.txt").write_text("a")
    git(modern, "add", "--all")
    git(modern, "commit", "--quiet", "--message", "one")
    assert explore(GitSource(type="worktree", source=modern, history=history))["log"] == ["one"]
    assert explore(GitSource(type="clone", url=str(modern), history=history))["log"] == ["one"]


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (
            GitSource(type="worktree", source=Path("/nowhere")),
            "git-source-not-found",
            "no repository contains '/nowhere'",
        ),
        (GitSource(type="worktree", ref="missing"), "git-ref-not-found", "'missing' names no commit"),
        (GitSource(type="worktree", ref="--help"), "git-ref-not-found", "'--help' names no commit"),
        (GitSource(type="clone", url="{source}", ref="missing"), "git-ref-not-found", "'missing' is no branch"),
        (GitSource(type="clone", url="{source}", ref="abcdef0"), "git-ref-not-found", "'abcdef0' is no commit"),
        (GitSource(type="clone", url="{source}/nowhere"), "git-clone-failed", "cannot clone"),
        (GitSource(type="clone", url="ext::sh -c 'echo x'"), "git-clone-failed", "not allowed"),
        (GitSource(type="clone", url="-u/bin/false"), "git-clone-failed", "cannot clone"),
    ],
)
def test_problems_are_set_up_errors(source: Path, explore, given: GitSource, code: str, message: str) -> None:
    url = given.url.format(source=source) if given.url else None
    located = source if given.type == "worktree" and given.source is None else given.source
    found = explore(GitSource(type=given.type, source=located, url=url, ref=given.ref), expect="error")
    info = found["outcome"].error
    assert (info.code, info.phase) == (code, "preparing")
    assert message in info.message
    assert "\n" not in info.message


def test_a_directory_outside_of_any_repository(explore, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    found = explore(GitSource(type="worktree", source=tmp_path / "plain"), expect="error")
    assert found["outcome"].error.code == "git-source-not-found"


def test_a_repository_without_commits(explore, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "fresh")
    found = explore(GitSource(type="worktree", source=tmp_path / "fresh"), expect="error")
    assert found["outcome"].error.code == "git-ref-not-found"


def test_credentials_are_in_no_message(explore) -> None:
    url = "http://user:swordfish@127.0.0.1:9/x.git"
    found = explore(GitSource(type="clone", url=url), expect="error")
    info = found["outcome"].error
    assert (info.code, info.retryable) == ("git-clone-failed", True)
    assert info.message.startswith("cannot clone 'http://<redacted>@127.0.0.1:9/x.git': ")
    assert "swordfish" not in info.message


@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_without_git_there_is_a_clear_error(
    source: Path, bench, explore, tmp_path: Path, monkeypatch, kind: str
) -> None:
    given = sources(source)[kind]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    found = explore(given, expect="error")
    assert found["outcome"].error.code == "git-not-found"
    assert found["outcome"].error.message.startswith("git not found: install git")


def test_git_in_place_is_refused(source: Path, bench, tmp_path: Path) -> None:
    from vally import WorkspaceChoice

    (tmp_path / "mine").mkdir()
    environment = Environment(git=GitSource(type="worktree", source=source))
    choice = WorkspaceChoice(path=tmp_path / "mine", in_place=True, keep=True)
    outcome = bench.run(bench.stimulus(environment=environment), item={"workspace": choice})
    assert outcome.error.message == "an environment with 'git' cannot run in place"


def test_a_read_only_repository_is_a_source(source: Path, explore) -> None:
    for path in [source, *source.rglob("*")]:
        if not path.is_symlink():
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    assert explore(GitSource(type="worktree", source=source))["status"] == ""
    for path in [source, *source.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(source)
