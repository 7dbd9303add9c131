"""Shards: the units of a plan dealt out to several machines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import click

Strategy = Literal["by-stimulus", "by-eval"]


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th (from 1) of `count` shards; an unsharded run is the first of one."""

    index: int = 1
    count: int = 1
    strategy: Strategy = "by-stimulus"

    @property
    def directory(self) -> str:
        """Its directory below that of the run."""
        return f"shard-{self.index}-of-{self.count}"

    def document(self) -> dict[str, Any]:
        """How manifests write it."""
        return {"index": self.index, "count": self.count, "strategy": self.strategy}

    def unit(self, eval_file: str, stimulus: str) -> str:
        """The unit that a stimulus belongs to; all variants, models and trials of a unit stay together."""
        return eval_file if self.strategy == "by-eval" else f"{eval_file}::{stimulus}"

    def chosen(self, units: Iterable[str]) -> frozenset[str]:
        """The units of this shard: of the sorted ones every `count`-th."""
        return frozenset(sorted(set(units))[self.index - 1 :: self.count])


class ShardType(click.ParamType[tuple[int, int]]):
    """`i/n` with 1 <= i <= n."""

    name = "i/n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Split at the slash."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", value)
        index, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= index <= count:
            self.fail(f"'{value}' is not of the form i/n with 1 <= i <= n (example: 2/5)", param, ctx)
        return index, count
