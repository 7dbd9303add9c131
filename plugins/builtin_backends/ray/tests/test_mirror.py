"""Paths there and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from vally import BackendError, Trajectory
from vally.testing import event, trajectory
from vally_backend_ray.mirror import Homeward, checked_name, map_paths, map_texts, mirrored
from vally_backend_ray.outcome import RemoteOutcome
from vally_backend_ray.pickling import packed, unpacked

ROOT = Path("/cache/bundles/k/fs")


@dataclass(frozen=True)
class Data:
    path: Path
    others: tuple[Path, ...] = ()
    more: Any = None


def there(path: Path) -> Path:
    return mirrored(path, ROOT)


def test_paths_lie_below_the_root_and_come_back() -> None:
    moved = map_paths(Data(Path("/home/u/x"), (Path("/a"),), {"k": [Path("/b"), "text"]}), there)
    assert moved == Data(ROOT / "home/u/x", (ROOT / "a",), {"k": [ROOT / "b", "text"]})
    assert Homeward({str(ROOT): ""}).text(f"cannot read '{moved.path}'") == "cannot read '/home/u/x'"


def test_relative_ways_mean_the_same() -> None:
    spec_dir = Path("/home/u/project/evals/a")
    assert (there(spec_dir) / "../../shared").resolve() == there(Path("/home/u/project/shared"))


def test_what_has_no_paths_stays_the_same_object() -> None:
    data = {"a": ["b", 1, None], "c": Data.__name__}
    assert map_paths(data, there) is data


def test_texts_of_models_change_and_their_set_fields_do_not() -> None:
    given = trajectory(event("assistant_message", content="in /w/x"), output="in /w/x")
    moved: Trajectory = map_texts(given, Homeward({"/w": "/home"}).text)
    assert (moved.output, moved.events[0].data["content"]) == ("in /home/x", "in /home/x")
    assert moved.model_fields_set == given.model_fields_set
    assert map_texts(given, lambda text: text) is given


def test_the_longest_prefix_counts() -> None:
    homeward = Homeward({"/s": "", "/s/a/run": "/out"})
    assert homeward.text("/s/a/run/x and /s/home") == "/out/x and /home"


def test_whether_data_holds_a_path_is_seen_in_its_bytes() -> None:
    homeward = Homeward({"/spool/x": "/out"})
    assert homeward.concerns(packed({"a": "in /spool/x/y"}))
    assert not homeward.concerns(packed({"a": "elsewhere"}))


@pytest.mark.parametrize("value", [{"a": 1}, MappingProxyType({"a": MappingProxyType({"b": (1,)})}), [Path("/x")]])
def test_packing(value: Any) -> None:
    assert unpacked(packed(value)) == value


def test_a_path_of_an_outcome_comes_home_as_a_path() -> None:
    outcome = RemoteOutcome("success", work_dir=Path("/spool/a/run/w"), warnings=("left /spool/a/run/x",))
    home: RemoteOutcome = map_texts(outcome, Homeward({"/spool/a/run": "/out"}).text)
    assert (home.work_dir, home.warnings) == (Path("/out/w"), ("left /out/x",))
    assert map_texts(outcome, lambda text: text) is outcome


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "."])
def test_names_of_files_stay_in_their_directory(name: str) -> None:
    with pytest.raises(BackendError, match="leaves its directory"):
        checked_name(name)
