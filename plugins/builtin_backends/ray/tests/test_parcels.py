"""What an eval refers to, and how its items look on a worker."""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import Environment, ExecutorChoice, GitSource, GraderEntry, StagedFile, Stimulus, TrialItem
from vally.testing import ProjectBuilder, stimulus, tree_digest, trial_item
from vally_backend_ray.parcels import Parcels, travelled
from vally_backend_ray.repositories import find_repository

ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
def project(tmp_path: Path) -> ProjectBuilder:
    made = ProjectBuilder(tmp_path / "project")
    made.file("evals/a/eval.yaml", "name: a\n")
    made.file("evals/a/near.txt", "near\n")
    made.file("shared/golden.txt", "golden\n")
    made.file("shared/.env", "SECRET=x\n")
    made.file("other/unused.txt", "unused\n")
    made.skill("tidy", "Tidy.")
    return made


def item_of(project: ProjectBuilder, given: Stimulus, **fields: Any) -> TrialItem:
    facts = {"project_root": project.root, "spec_path": project.root / "evals/a/eval.yaml", "work_dir": project.root}
    config = fields.pop("config", {})
    item = trial_item(project.root / "evals" / "a", given, **{**facts, **fields})
    return replace(item, executor=ExecutorChoice(name="x", config=config))


def bundled(project: ProjectBuilder, given: Stimulus, tmp_path: Path, **fields: Any) -> set[str]:
    """Names in the bundle of one item, relative to the project."""
    target = tmp_path / "bundles"
    target.mkdir(exist_ok=True)
    bundle = Parcels(target, ENV).of(item_of(project, given, **fields))
    prefix = f"fs/{project.root.as_posix().lstrip('/')}/"
    with tarfile.open(bundle.archive) as tar:
        return {info.name.removeprefix(prefix) for info in tar if not info.isdir()}


def test_the_folder_of_the_spec_travels(project: ProjectBuilder, tmp_path: Path) -> None:
    assert bundled(project, stimulus(), tmp_path) == {"evals/a/eval.yaml", "evals/a/near.txt"}


def test_staged_files_and_skills_travel_from_anywhere(project: ProjectBuilder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "data.bin"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(b"1")
    staged = (StagedFile(src=project.root / "shared", dest="."), StagedFile(src=elsewhere, dest="."))
    given = stimulus(environment=Environment(files=staged))
    names = bundled(project, given, tmp_path, skills=(project.root / "skills" / "tidy",))
    assert names >= {"shared/golden.txt", "shared/.env", "skills/tidy/SKILL.md"}
    assert any(name.endswith("elsewhere/data.bin") for name in names)
    assert "other/unused.txt" not in names


@pytest.mark.parametrize(
    "fields",
    [
        {"graders": (GraderEntry(type="x", config={"file": "../../shared/golden.txt"}),)},
        {"graders": (GraderEntry(type="x", config={"deep": [{"command": "cmp out ../../shared/golden.txt"}]}),)},
        {"environment": Environment(commands=("cat '../../shared/golden.txt' | sh",))},
    ],
    ids=["file", "word of a command", "set-up command"],
)
def test_files_of_the_project_that_texts_name_travel(
    fields: dict[str, Any], project: ProjectBuilder, tmp_path: Path
) -> None:
    assert "shared/golden.txt" in bundled(project, stimulus(**fields), tmp_path)


def test_configs_of_executors_name_files_too(project: ProjectBuilder, tmp_path: Path) -> None:
    assert "other/unused.txt" in bundled(project, stimulus(), tmp_path, config={"fixtureDir": "../../other"})


@pytest.mark.parametrize("text", ["/etc/passwd", "..", "../..", "/", "~", "nothing/there", "a" * 100_000, "'"])
def test_texts_that_name_nothing_of_the_project(text: str, project: ProjectBuilder, tmp_path: Path) -> None:
    given = stimulus(graders=(GraderEntry(type="x", config={"value": text}),))
    assert bundled(project, given, tmp_path) == {"evals/a/eval.yaml", "evals/a/near.txt"}


def test_hidden_files_in_a_folder_that_is_only_named_stay(project: ProjectBuilder, tmp_path: Path) -> None:
    given = stimulus(graders=(GraderEntry(type="x", config={"value": "../../shared"}),))
    names = bundled(project, given, tmp_path)
    assert "shared/golden.txt" in names
    assert "shared/.env" not in names


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["plain", "bare", "worktree", "detached"])
def test_a_repository_travels_with_its_history_and_is_only_read(
    kind: str, project: ProjectBuilder, tmp_path: Path
) -> None:
    project.git()
    source = project.root
    git(source, "tag", "first")
    if kind == "detached":
        git(source, "checkout", "--quiet", "--detach")
    if kind == "bare":
        source = tmp_path / "bare.git"
        git(tmp_path, "clone", "--quiet", "--bare", str(project.root), str(source))
    if kind == "worktree":
        source = tmp_path / "second"
        git(project.root, "worktree", "add", "--quiet", "-b", "own", str(source))
    head = git(source, "rev-parse", "HEAD")
    before = tree_digest(source), tree_digest(project.root)
    given = stimulus(environment=Environment(git=GitSource(type="worktree", source=source)))
    target = tmp_path / "bundles"
    target.mkdir()
    bundle = Parcels(target, ENV).of(item_of(project, given))
    assert (tree_digest(source), tree_digest(project.root)) == before
    with tarfile.open(bundle.archive) as tar:
        tar.extraction_filter = lambda info, _target: info
        tar.extractall(tmp_path / "there")
    there = tmp_path / "there" / "fs" / source.as_posix().lstrip("/")
    found = find_repository(there)
    assert found is not None
    assert git(there, "--git-dir", str(found.git_dir), "rev-parse", "HEAD") == head
    assert git(there, "--git-dir", str(found.git_dir), "rev-parse", "first") == head
    if kind == "worktree":
        assert git(there, "--git-dir", str(found.git_dir), "rev-parse", "own") == head


def test_the_bundle_of_a_repository_keeps_its_name(project: ProjectBuilder, tmp_path: Path) -> None:
    project.git()
    given = stimulus(environment=Environment(git=GitSource(type="worktree", source=project.root)))
    keys = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        keys.add(Parcels(tmp_path / name, ENV).of(item_of(project, given)).key)
    assert len(keys) == 1


def test_a_clone_by_path_travels_too(project: ProjectBuilder, tmp_path: Path) -> None:
    library = ProjectBuilder(project.root / "library")
    library.file("x.txt", "x\n")
    library.git()
    given = stimulus(environment=Environment(git=GitSource(type="clone", url="../../library")))
    assert "library/.git/HEAD" in bundled(project, given, tmp_path)


def test_an_item_on_a_worker(project: ProjectBuilder) -> None:
    root = Path("/cache/fs")
    staged = StagedFile(src=project.root / "shared", dest="x")
    source = GitSource(type="clone", url="/srv/library")
    given = stimulus(environment=Environment(files=(staged,), git=source))
    item = item_of(project, given, skills=(project.root / "skills" / "tidy",))
    moved = travelled(item, root)
    below = root / project.root.as_posix().lstrip("/")
    assert (moved.spec_dir, moved.skills) == (below / "evals" / "a", (below / "skills" / "tidy",))
    assert moved.stimulus.environment.files == (replace(staged, src=below / "shared"),)
    assert moved.stimulus.environment.git == replace(source, url=str(root / "srv/library"))
    assert (moved.item_id, moved.workspace) == (item.item_id, item.workspace)


def test_items_of_one_stimulus_share_a_bundle(project: ProjectBuilder, tmp_path: Path) -> None:
    parcels = Parcels(tmp_path, ENV)
    given = stimulus()
    first = parcels.of(item_of(project, given))
    project.file("evals/a/near.txt", "changed while the run goes on\n")
    assert parcels.of(item_of(project, given, trial_index=1)) is first
