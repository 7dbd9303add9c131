"""What an image that is built is named after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vally_backend_container.images import DEFAULT_DOCKERFILE, context_digest


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    (tmp_path / "src" / "a").write_text("a")
    (tmp_path / "link").symlink_to("src/a")
    return tmp_path


CHANGES: dict[str, Callable[[Path], object]] = {
    "dockerfile": lambda root: (root / "Dockerfile").write_text("FROM y\n"),
    "content": lambda root: (root / "src" / "a").write_text("b"),
    "name": lambda root: (root / "src" / "a").rename(root / "src" / "b"),
    "mode": lambda root: (root / "src" / "a").chmod(0o755),
    "new": lambda root: (root / "src" / "b").write_text(""),
    "empty-directory": lambda root: (root / "more").mkdir(),
    "link": lambda root: ((root / "link").unlink(), (root / "link").symlink_to("src/b")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_makes_another_image(change: str, context: Path) -> None:
    before = context_digest(context / "Dockerfile", "")
    CHANGES[change](context)
    assert context_digest(context / "Dockerfile", "") != before


def test_time_and_place_and_caches_of_python_do_not(context: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    before = context_digest(context / "Dockerfile", "")
    (context / "__pycache__").mkdir()
    (context / "__pycache__" / "x.pyc").write_text("x")
    assert context_digest(context / "Dockerfile", "") == before
    context.rename(other / "moved")
    assert context_digest(other / "moved" / "Dockerfile", "") == before


def test_the_file_and_the_platform_count(context: Path) -> None:
    (context / "Other").write_text("FROM x\n")
    digests = {context_digest(context / name, platform) for name in ("Dockerfile", "Other") for platform in ("", "p")}
    assert len(digests) == 4


def test_the_default_image_is_built_from_its_directory_alone() -> None:
    assert [path.name for path in DEFAULT_DOCKERFILE.parent.iterdir()] == ["Dockerfile"]
    assert DEFAULT_DOCKERFILE.read_text().count("FROM ") == 1
