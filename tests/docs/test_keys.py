"""Every key that an eval, a project file or an experiment may have is told outside of the list of diagnostics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from vally.testing import run_cli

DOCS = ROOT / "docs"


def keys_of(schema: Any) -> Iterator[str]:
    """The keys of a schema at any depth; settings of plugins have a test of their own, older spellings need none."""
    if isinstance(schema, list):
        for item in schema:
            yield from keys_of(item)
    if not isinstance(schema, dict) or schema.get("deprecated"):
        return
    for key, value in schema.get("properties", {}).items():
        if not (isinstance(value, dict) and value.get("deprecated")):
            yield key
            yield from keys_of(value)
    for word, value in schema.items():
        if word == "$defs":
            own = {name: part for name, part in value.items() if not is_of_a_plugin(name)}
            yield from keys_of(list(own.values()))
        elif word != "properties":
            yield from keys_of(value)


def is_of_a_plugin(name: str) -> bool:
    return name.endswith("-config") or re.search(r"-[A-Z]", name) is not None


def words_in_code() -> set[str]:
    """The words in inline code of the guide and the reference."""
    pages = [*DOCS.glob("guide/*.md"), *DOCS.glob("reference/*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages if page.name != "diagnostics.md"]
    prose = [re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE) for text in texts]
    return {word for text in prose for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}


@pytest.mark.parametrize("kind", ["eval", "config", "experiment"])
def test_every_key_is_told(kind: str, tmp_path: Path) -> None:
    schema = json.loads(run_cli(["schema", kind], cwd=tmp_path).stdout)
    keys = set(keys_of(schema))
    assert "environment" in keys or "environments" in keys
    assert sorted(keys - words_in_code()) == []
