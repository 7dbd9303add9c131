"""The bounded copy of the workspace that judges read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vally import Config, GraderInput, GraderResult, GraderSpec, RepoFile, RepoSnapshot, grade_trajectory
from vally.testing import plugin_host, trajectory

KIB = 2**10


class RepoConfig(Config):
    reads: bool = True

    def evidence(self) -> frozenset[str]:
        return frozenset({"repo"}) if self.reads else frozenset()


class Looker:
    """Keeps what it was given."""

    seen: RepoSnapshot | None = None

    async def grade(self, input: GraderInput[RepoConfig]) -> GraderResult:
        self.seen = input.repo
        return GraderResult.verdict(input.repo is not None, "looked")


class Writer:
    """Changes the workspace, as commands of graders do."""

    def grade(self, input: GraderInput[object]) -> GraderResult:
        (Path(input.trajectory.work_dir) / "made-by-a-grader").write_text("x")
        return GraderResult.verdict(True, "wrote")


def snapshot(root: Path, *, reads: bool = True, status: str | None = None) -> RepoSnapshot | None:
    looker = Looker()
    host = plugin_host(
        GraderSpec(name="looks", summary="looks", factory=lambda: looker, config=RepoConfig),
        GraderSpec(name="writes", summary="writes", factory=Writer, requires_workspace=True),
    )
    entries = [{"type": "writes"}, {"type": "looks", "config": {"reads": reads}}]
    grade_trajectory(trajectory(work_dir=str(root), workspace_status=status), entries, host=host)
    return looker.seen


def files(root: Path) -> dict[str, RepoFile]:
    found = snapshot(root)
    assert found is not None
    return {file.path: file for file in found.files}


def write(root: Path, path: str, content: bytes = b"x") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def test_it_is_taken_before_the_first_grader_runs(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", b"a\r\n")
    assert files(tmp_path) == {"a.txt": RepoFile("a.txt", 3, b"a\r\n")}
    assert (tmp_path / "made-by-a-grader").exists()


def test_it_is_taken_only_for_configs_that_read_it(tmp_path: Path) -> None:
    write(tmp_path, "a.txt")
    assert snapshot(tmp_path, reads=False) is None


def test_a_config_that_cannot_say_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.txt")
    monkeypatch.setattr(RepoConfig, "evidence", lambda _: 1 / 0)
    assert snapshot(tmp_path) is None


def test_files_are_in_path_order(tmp_path: Path) -> None:
    for path in ("a/b", "a-b/c", "Z", "é", "a"):
        write(tmp_path, path if path != "a" else "a.txt")
    assert list(files(tmp_path)) == ["Z", "a-b/c", "a.txt", "a/b", "é"]


@pytest.mark.parametrize(
    "path",
    [
        *(f"sub/{name}/x" for name in (".git", "node_modules", ".venv", "venv", "__pycache__", "dist", "build")),
        *(f"{name}/x" for name in ("target", "bin", "obj", "coverage", ".pytest_cache", "my_cache", ".cache-loader")),
        ".git",
    ],
)
def test_what_tools_make_is_skipped(path: str, tmp_path: Path) -> None:
    write(tmp_path, path)
    write(tmp_path, "kept")
    assert list(files(tmp_path)) == ["kept"]


@pytest.mark.parametrize("path", ["builder/x", "dist", "cached/x", "src/.cachet_cachet", "my_cache"])
def test_similar_names_are_kept(path: str, tmp_path: Path) -> None:
    # `.cachet…` is a file: only directories are skipped by name.
    write(tmp_path, path)
    assert path in files(tmp_path)


def test_large_and_binary_files_have_name_and_size_only(tmp_path: Path) -> None:
    write(tmp_path, "fits", b"x" * (64 * KIB))
    write(tmp_path, "large", b"x" * (64 * KIB + 1))
    write(tmp_path, "binary", b"x" * (8 * KIB - 1) + b"\0")
    write(tmp_path, "late-nul", b"x" * (8 * KIB) + b"\0")
    found = files(tmp_path)
    assert {path: (file.size, file.left_out) for path, file in found.items()} == {
        "binary": (8 * KIB, "binary"),
        "fits": (64 * KIB, None),
        "large": (64 * KIB + 1, "limit"),
        "late-nul": (8 * KIB + 1, None),
    }
    assert [path for path, file in found.items() if file.content is not None] == ["fits", "late-nul"]


def test_at_most_two_mebibytes_in_all(tmp_path: Path) -> None:
    for number in range(33):
        write(tmp_path, f"{number:02}", bytes([65]) * (64 * KIB))
    write(tmp_path, "zz", b"")
    assert [path for path, file in files(tmp_path).items() if file.left_out] == ["32"]


def test_at_most_500_files(tmp_path: Path) -> None:
    for number in range(503):
        write(tmp_path, f"{number:03}", b"")
    assert [path for path, file in files(tmp_path).items() if file.left_out] == ["500", "501", "502"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path, "outside/secret", b"secret")
    write(root, "a.txt")
    (root / "file").symlink_to(tmp_path / "outside" / "secret")
    (root / "directory").symlink_to(tmp_path / "outside")
    (root / "dangling").symlink_to("nowhere")
    found = files(root)
    assert [(path, file.left_out, file.content) for path, file in found.items()] == [
        ("a.txt", None, b"x"),
        ("dangling", "link", None),
        ("directory", "link", None),
        ("file", "link", None),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert files(tmp_path) == {"pipe": RepoFile("pipe", left_out="unreadable")}


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad-\xff")
    try:
        write(tmp_path, name)
    except OSError:  # this file system takes Unicode only
        return
    assert list(files(tmp_path)) == [name]


@pytest.mark.parametrize(
    ("root", "status"), [("empty", None), ("missing", None), ("full", "remote")], ids=["empty", "missing", "remote"]
)
def test_there_is_none(root: str, status: str | None, tmp_path: Path) -> None:
    write(tmp_path, "full/a")
    (tmp_path / "empty" / "build").mkdir(parents=True)
    assert snapshot(tmp_path / root, status=status) is None
