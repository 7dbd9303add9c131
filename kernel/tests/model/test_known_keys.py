"""Which keys a config model takes at a place, and what is suggested for those that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import Field

from vally import CamelConfig, ConfigInvalid
from vally.model.config import parse_config
from vally.model.known_keys import known_keys


class Leaf(CamelConfig):
    max_size: int = 0


class Branch(CamelConfig):
    kind: Literal["branch"] = "branch"
    leaves: list[Leaf] = Field(default_factory=list)
    named_leaves: dict[str, Leaf] = Field(default_factory=dict)


class Tree(CamelConfig):
    branch: Branch | Leaf | None = None
    pairs: list[list[Leaf] | str] = Field(default_factory=list)
    free: Mapping[str, Any] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ((), ["branch", "free", "pairs"]),
        (("branch",), ["kind", "leaves", "maxSize", "namedLeaves"]),
        (("branch", "leaves"), []),
        (("branch", "leaves", 0), ["maxSize"]),
        (("branch", "namedLeaves", "any"), ["maxSize"]),
        (("branch", "named_leaves", "any"), ["maxSize"]),
        (("pairs", 3, 1), ["maxSize"]),
        (("free", "any"), []),
        (("unknown",), []),
    ],
)
def test_keys_at_a_place(path: tuple[int | str, ...], keys: list[str]) -> None:
    assert known_keys(Tree, path) == keys


@pytest.mark.parametrize(
    ("config", "suggestions"),
    [
        ({"brnch": {}}, {"unknown key 'brnch'": "did you mean 'branch'?"}),
        ({"nothing": {}}, {}),
        ({"branch": {"leafs": []}}, {"unknown key 'branch.leafs'": "did you mean 'leaves'?"}),
        (
            {"branch": {"leaves": [{"maxSze": 1}]}},
            {"unknown key 'branch.leaves[0].maxSze'": "did you mean 'maxSize'?"},
        ),
        (
            {"branch": {"namedLeaves": {"a": {"maxSze": 1}}}},
            {"unknown key 'branch.namedLeaves.a.maxSze'": "did you mean 'maxSize'?"},
        ),
        ({"pairs": [[{"max": 1}, {"maxsize": 1}]]}, {"unknown key 'pairs[0][1].maxsize'": "did you mean 'maxSize'?"}),
    ],
)
def test_suggestions_at_any_depth(config: dict[str, object], suggestions: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_config("tree", Tree, config)
    assert caught.value.suggestions == suggestions
    assert set(suggestions) <= set(caught.value.problems)
