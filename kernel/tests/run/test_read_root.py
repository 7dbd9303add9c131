"""Files that graders read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vally import GraderError, Matches, ReadRoot, Trajectory, UnreadableFile, resolve_read_root


@pytest.fixture
def places(tmp_path: Path) -> Trajectory:
    for path, text in (("work/out.txt", "work"), ("work/only.txt", "work"), ("artifacts/out.txt", "artifact")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return Trajectory(work_dir=str(tmp_path / "work"), artifact_dir=str(tmp_path / "artifacts"))


def test_artifacts_first_then_the_workspace(tmp_path: Path, places: Trajectory) -> None:
    assert resolve_read_root(places, "out.txt") == Matches(tmp_path / "artifacts", "artifact", ("out.txt",))
    assert resolve_read_root(places, "only.txt") == Matches(tmp_path / "work", "workspace", ("only.txt",))
    assert resolve_read_root(places, "none") == Matches(tmp_path / "work", "workspace", ())
    assert ReadRoot(places).read_text(ReadRoot(places).resolve("out.txt"), "out.txt") == "artifact"


def test_strict_artifacts_are_the_only_place(tmp_path: Path, places: Trajectory) -> None:
    strict = places.model_copy(update={"artifact_dir_strict": True, "workspace_status": "remote"})
    assert resolve_read_root(strict, "only.txt") == Matches(tmp_path / "artifacts", "artifact", ())
    missing = strict.model_copy(update={"artifact_dir": str(tmp_path / "gone")})
    with pytest.raises(GraderError, match=r"^Artifact directory is not accessible: .*gone$") as caught:
        resolve_read_root(missing, "only.txt")
    assert caught.value.kind == "workspace"


@pytest.mark.parametrize(
    "pattern", ["", "/etc/passwd", "../out.txt", "a/../../b", "C:\\x", "{..,a}/out.txt", "\\.\\./x"]
)
def test_a_pattern_cannot_leave(places: Trajectory, pattern: str) -> None:
    with pytest.raises(GraderError, match="does not stay inside the workspace") as caught:
        resolve_read_root(places, pattern)
    assert caught.value.kind == "config"


def test_reading(tmp_path: Path, places: Trajectory) -> None:
    work = tmp_path / "work"
    (work / "bom").write_bytes(b"\xef\xbb\xbf\xef\xbb\xbfa\r\n\xff\x00")
    root = ReadRoot(places)
    matches = root.resolve("{bom,only.txt}")
    assert matches.files() == ("bom", "only.txt")
    assert root.read_text(matches, "bom") == "\ufeffa\r\n\ufffd\x00"
    assert root.read_text(matches, "only.txt", limit=4) == "work"
    with pytest.raises(UnreadableFile) as caught:
        root.read_text(matches, "only.txt", limit=3)
    assert (caught.value.path, caught.value.reason) == ("only.txt", "too large")
    (work / "only.txt").unlink()
    with pytest.raises(UnreadableFile) as caught:
        root.read_text(matches, "only.txt")
    assert caught.value.reason == "ENOENT"


if sys.platform != "win32":

    def test_links_out_of_the_root_are_not_read(tmp_path: Path, places: Trajectory) -> None:
        (tmp_path / "work" / "link").symlink_to(tmp_path / "artifacts" / "out.txt")
        (tmp_path / "work" / "dir").symlink_to(tmp_path / "artifacts")
        root = ReadRoot(places)
        for path in ("link", "dir/out.txt"):
            matches = root.resolve(path)
            assert matches.files() == (path,)
            with pytest.raises(UnreadableFile) as caught:
                root.read_text(matches, path)
            assert caught.value.reason == "outside workspace"
        assert root.resolve("dir").files() == ()
