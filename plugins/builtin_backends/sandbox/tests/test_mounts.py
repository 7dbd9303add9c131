"""What a view shows and hides, before any process is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally_backend_sandbox.mounts import Access, View


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("hidden/shown/deep", "hidden/other", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "hidden" / "shown")
    return tmp_path


def view(tree: Path, **rules: list[Path]) -> View:
    made = View(tree / "temporary")
    accesses: dict[str, Access] = {"hide": "hide", "ro": "ro", "rw": "rw"}
    for name, paths in rules.items():
        made.set(accesses[name], paths)
    return made


def mounted(arguments: list[str], option: str) -> list[str]:
    return [arguments[place + 1] for place, word in enumerate(arguments) if word == option]


def test_the_deepest_rule_decides(tree: Path) -> None:
    made = view(tree, hide=[tree / "hidden"], ro=[tree / "hidden" / "shown"], rw=[tree / "work"])
    assert not made.sees(tree / "hidden")
    assert not made.sees(tree / "hidden" / "other")
    assert made.sees(tree / "hidden" / "shown" / "deep")
    assert made.sees(tree / "work" / "made-later")


def test_a_later_rule_for_a_path_beats_an_earlier_one(tree: Path) -> None:
    made = view(tree, hide=[tree / "work"], rw=[tree / "work"])
    assert made.sees(tree / "work")
    assert str(tree / "work") in mounted(made.arguments({}), "--bind")


def test_what_does_not_exist_has_no_rule(tree: Path) -> None:
    assert view(tree, hide=[tree / "nothing"]).rules == {}


def test_the_system_s_temporary_directories_are_others(tree: Path) -> None:
    made = view(tree)
    assert made.sees(Path("/tmp"))
    assert not made.sees(Path("/tmp/whatever"))
    assert made.sees(Path("/usr/bin"))


def test_a_link_is_seen_when_both_ends_are(tree: Path) -> None:
    made = view(tree, ro=[tree], hide=[tree / "hidden"])
    assert not made.sees(tree / "link")
    made.show([tree / "link"])
    assert made.sees(tree / "link")
    assert made.rules[tree / "hidden" / "shown"] == "ro"


def test_showing_does_not_widen_what_may_be_written(tree: Path) -> None:
    made = view(tree, rw=[tree / "work"])
    made.show([tree / "work"])
    assert made.rules[tree / "work"] == "rw"


def test_directories_above_are_mounted_first(tree: Path) -> None:
    made = view(tree, rw=[tree / "hidden" / "shown"], hide=[tree / "hidden"], ro=[tree])
    arguments = made.arguments({})
    places = [arguments.index(str(path)) for path in (tree, tree / "hidden", tree / "hidden" / "shown")]
    assert places == sorted(places)


def test_a_hidden_place_cannot_be_written(tree: Path) -> None:
    arguments = view(tree, ro=[tree], hide=[tree / "hidden"]).arguments({})
    assert str(tree / "hidden") in mounted(arguments, "--tmpfs")
    assert str(tree / "hidden") in mounted(arguments, "--remount-ro")


def test_the_name_of_what_is_hidden_twice_is_not_told(tree: Path) -> None:
    arguments = view(tree, ro=[tree], hide=[tree / "hidden", tree / "hidden" / "other"]).arguments({})
    assert not any("other" in word for word in arguments)


def test_a_hidden_file_is_covered(tree: Path) -> None:
    file = tree / "work" / "secret"
    file.write_text("secret")
    arguments = view(tree, rw=[tree / "work"], hide=[file]).arguments({})
    place = arguments.index(str(file))
    assert arguments[place - 2 : place] == ["--ro-bind", "/dev/null"]
