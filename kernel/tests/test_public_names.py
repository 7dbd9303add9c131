"""The public names: what type checkers see is what a program gets."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import vally

STUB = Path(vally.__file__).with_suffix(".pyi")


def stub_names() -> dict[str, str]:
    """Module by public name, as the stub says."""
    return {
        alias.asname or alias.name: node.module or ""
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_stub_has_the_names_of_the_table() -> None:
    assert set(stub_names()) == set(vally.__all__)


@pytest.mark.parametrize("name", sorted(stub_names()))
def test_every_name_is_what_the_stub_says(name: str) -> None:
    module = __import__(stub_names()[name], fromlist=[name])
    assert getattr(vally, name) is getattr(module, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "nothing"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(vally, name)


def test_names_are_listed() -> None:
    assert set(vally.__all__) <= set(dir(vally))
