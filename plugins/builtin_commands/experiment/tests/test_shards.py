"""How units are dealt out to shards."""

from __future__ import annotations

import click
import pytest

from vally_command_experiment.shards import Shard, ShardType

UNITS = [f"{file}::{stimulus}" for file, stimuli in {"first": "ab", "second": "cde"}.items() for stimulus in stimuli]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_units_are_dealt_out_once_each(count: int) -> None:
    dealt = [unit for index in range(1, count + 1) for unit in Shard(index, count).chosen(UNITS)]
    assert sorted(dealt) == sorted(UNITS)


def test_units_go_round_in_sorted_order() -> None:
    assert Shard(1, 2).chosen(reversed(UNITS)) == {"first::a", "second::c", "second::e"}
    assert Shard(2, 2, "by-eval").unit("first", "a") == "first"


@pytest.mark.parametrize(("text", "pair"), [("1/1", (1, 1)), ("2/5", (2, 5)), ("05/10", (5, 10))])
def test_words_that_name_a_shard(text: str, pair: tuple[int, int]) -> None:
    assert ShardType().convert(text, None, None) == pair


@pytest.mark.parametrize("text", ["", "1", "0/1", "2/1", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2", "٣/٥"])
def test_words_that_name_none(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not of the form i/n"):
        ShardType().convert(text, None, None)
