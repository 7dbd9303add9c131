"""Bundles: what is in them, what they are called, and how they are unpacked."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from vally import BackendError
from vally_backend_ray import unpacking
from vally_backend_ray.bundle import Bundle, BundleFiles, make_bundle
from vally_backend_ray.mirror import mirrored
from vally_backend_ray.unpacking import BundleStore

LIMIT = 2**20


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (
        "a.txt",
        "deep/b.txt",
        ".hidden",
        ".git/config",
        "__pycache__/x.pyc",
        "run/results.jsonl",
        "env/pyvenv.cfg",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "tool").write_text("#!/bin/sh")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("deep/b.txt")
    (root / "empty").mkdir()
    return root


def made(tmp_path: Path, **files: set[Path]) -> Bundle:
    target = tmp_path / "bundles"
    target.mkdir(exist_ok=True)
    return make_bundle(BundleFiles(**files), target, limit=LIMIT)  # type: ignore[arg-type]  # sets only


async def unpacked(bundle: Bundle, cache: Path, taken: list[int] | None = None) -> Path:
    async def pieces() -> AsyncIterator[bytes]:
        if taken is not None:
            taken.append(1)
        data = bundle.archive.read_bytes()
        for start in range(0, len(data), 1000):
            yield data[start : start + 1000]

    return await BundleStore(cache).root(bundle.key, pieces())


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_a_folder_travels_without_what_trials_do_not_need(tree: Path, tmp_path: Path) -> None:
    root = anyio.run(unpacked, made(tmp_path, visible={tree}), tmp_path / "cache")
    there = mirrored(tree, root)
    assert names(there) == {"a.txt", "deep/b.txt", "tool", "link"}
    assert (there / "empty").is_dir()
    assert os.access(there / "tool", os.X_OK)
    assert (there / "link").readlink() == Path("deep/b.txt")
    assert (there / "a.txt").stat().st_mtime == pytest.approx((tree / "a.txt").stat().st_mtime)


def test_what_is_staged_travels_whole(tree: Path, tmp_path: Path) -> None:
    root = anyio.run(unpacked, made(tmp_path, whole={tree}), tmp_path / "cache")
    assert names(mirrored(tree, root)) == names(tree)


def test_a_link_that_is_named_is_what_it_leads_to(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "alias"
    outside.symlink_to(tree / "deep")
    root = anyio.run(unpacked, made(tmp_path, whole={outside}), tmp_path / "cache")
    assert (mirrored(outside, root) / "b.txt").read_text() == "deep/b.txt"


def test_the_name_follows_from_the_contents(tree: Path, tmp_path: Path) -> None:
    first = made(tmp_path, visible={tree})
    os.utime(tree / "a.txt", (1, 1))
    (tree / ".hidden").write_text("changed")
    assert made(tmp_path, visible={tree}).key == first.key
    (tree / "a.txt").write_text("changed")
    second = made(tmp_path, visible={tree})
    (tree / "tool").chmod(0o644)
    third = made(tmp_path, visible={tree})
    assert len({first.key, second.key, third.key}) == 3


def test_sockets_stay_where_they_are(tree: Path, tmp_path: Path) -> None:
    # Paths of sockets are short.
    with socket.socket(socket.AF_UNIX) as open_socket, contextlib.chdir(tree):
        open_socket.bind("socket")
        bundle = made(tmp_path, whole={tree})
    root = anyio.run(unpacked, bundle, tmp_path / "cache")
    assert "socket" not in names(mirrored(tree, root))


def test_too_much_is_refused(tree: Path, tmp_path: Path) -> None:
    with (tree / "huge").open("wb") as file:
        file.truncate(LIMIT + 1)
    with pytest.raises(BackendError, match="at most 1 MiB travel") as caught:
        made(tmp_path, visible={tree})
    assert str(tree) in caught.value.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_named(tree: Path, tmp_path: Path) -> None:
    (tree / "a.txt").chmod(0)
    with pytest.raises(BackendError, match=r"a\.txt"):
        made(tmp_path, visible={tree})


def test_a_bundle_is_fetched_once_per_node(tree: Path, tmp_path: Path) -> None:
    bundle, taken = made(tmp_path, visible={tree}), []

    async def main() -> set[Path]:
        return {await unpacked(bundle, tmp_path / "cache", taken) for _ in range(3)}

    roots = anyio.run(main)
    assert len(roots) == 1
    assert taken == [1]
    assert [path.name for path in (tmp_path / "cache" / "bundles").iterdir()] == [bundle.key]


def test_two_workers_of_a_node_may_unpack_at_once(tree: Path, tmp_path: Path) -> None:
    bundle = made(tmp_path, visible={tree})

    async def main() -> list[Path]:
        found: list[Path] = []

        async def one() -> None:
            found.append(await unpacked(bundle, tmp_path / "cache"))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(one)
        return found

    roots = anyio.run(main)
    assert len(set(roots)) == 1
    assert (mirrored(tree, roots[0]) / "a.txt").is_file()
    assert [path.name for path in (tmp_path / "cache" / "bundles").iterdir()] == [bundle.key]


def test_what_nobody_used_for_long_is_removed(tree: Path, tmp_path: Path) -> None:
    old = tmp_path / "cache" / "bundles" / "old"
    recent = tmp_path / "cache" / "bundles" / "recent"
    for path in (old, recent):
        path.mkdir(parents=True)
    os.utime(old, (1, 1))
    anyio.run(unpacked, made(tmp_path, visible={tree}), tmp_path / "cache")
    assert (old.exists(), recent.exists()) == (False, True)
    assert unpacking.UNUSED_DAYS > 1
