"""Hints for mistyped names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally.text.suggest import did_you_mean, edit_distance, near_matches


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("", "", 0), ("abc", "", 3), ("abc", "abd", 1), ("ab", "ba", 1), ("ca", "abc", 3), ("kitten", "sitting", 3)],
)
def test_distance(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == edit_distance(right, left) == distance


@pytest.mark.parametrize(
    ("word", "candidates", "matches"),
    [
        ("promt", ["prompt", "name"], ["prompt"]),
        ("time_out", ["timeout"], ["timeout"]),
        ("TIMEOUT", ["timeout"], ["timeout"]),
        ("ab", ["ac"], []),
        ("abc", ["abd", "axd"], ["abd"]),
        ("abcde", ["abcxy"], ["abcxy"]),
        ("abcdefgh", ["abcdexyz"], []),
        ("abcdefghi", ["abcdefxyz"], ["abcdefxyz"]),
        ("output-contain", ["output-contains", "output-matches", "file-contains"], ["output-contains"]),
        ("name1", ["name4", "name3", "name2", "name5"], ["name2", "name3", "name4"]),
        ("name", ["name", "nams", "nam"], ["name", "nam", "nams"]),
    ],
)
def test_near_matches(word: str, candidates: list[str], matches: list[str]) -> None:
    assert near_matches(word, candidates) == matches


def test_hint() -> None:
    assert did_you_mean("xyz", ["abc"]) is None
    assert did_you_mean("abcd", ["abce"]) == "did you mean 'abce'?"
    assert did_you_mean("abcd", ["abcf", "abce"]) == "did you mean 'abce' or 'abcf'?"
    assert did_you_mean("abcd", ["abcf", "abce", "abcg", "abch"]) == "did you mean 'abce', 'abcf' or 'abcg'?"


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_bounded(left: str, right: str) -> None:
    distance = edit_distance(left, right)
    assert abs(len(left) - len(right)) <= distance <= max(len(left), len(right))
    assert (distance == 0) is (left == right)
