"""Every example by which graders are specified is a test case."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT
from example_ids import GRADER_EXAMPLES, expected_ids, ids_in, ids_with_a_case

EXPECTED = expected_ids()


@pytest.mark.heavy
@pytest.mark.parametrize("place", sorted(set(EXPECTED.values())))
def test_every_example_has_a_test_case(place: str) -> None:
    assert {id_ for id_, where in EXPECTED.items() if where == place} <= ids_with_a_case(place)


def test_the_families_are_those_of_the_built_ins() -> None:
    graders = {path.parent for path in ROOT.glob("plugins/builtin_graders/*/pyproject.toml")}
    assert {(ROOT / family.place) for family in GRADER_EXAMPLES.values()} >= graders


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('pytest.param(1, id="FE-6")', ["FE-6"]),
        ('ROWS = [("RX-10-s", "x")]', ["RX-10"]),
        ('def test_it():\n    """TC-6."""', ["TC-6"]),
        ('def test_it():\n    """Like TC-6."""', []),
        ('def helper():\n    """TC-6."""', []),
        ('"""TC-6."""', []),
        ('class Thing:\n    """TC-6."""', []),
        ('# TC-6\nx = "UTF-16LE"', []),
    ],
)
def test_what_counts_as_a_test_case(text: str, ids: list[str], tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(text, encoding="utf-8")
    assert list(ids_in(path)) == ids


@pytest.fixture
def check_ids() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_ids", ROOT / "tests" / "tools" / "check_ids.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_chapter_can_be_compared_with_the_list(check_ids: ModuleType, tmp_path: Path) -> None:
    chapter = tmp_path / "graders.md"
    rows = [
        f"| {prefix}-{n} | x | y |" for prefix, family in GRADER_EXAMPLES.items() for n in range(1, family.count + 1)
    ]
    chapter.write_text("\n".join(["| id | facts | result |", *rows, "NM-99 in a sentence"]), encoding="utf-8")
    assert check_ids.differences(chapter) == []
    chapter.write_text("\n".join([*rows[1:], "| JP-4 | x | y |", "| ZZ-1 | x | y |"]), encoding="utf-8")
    assert check_ids.differences(chapter) == [
        "JP-4 stands in the chapter and not in the list",
        "NM-1 stands in the list and not in the chapter",
        "ZZ-1 stands in the chapter and not in the list",
    ]
