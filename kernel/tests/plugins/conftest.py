"""A site directory per test, so that plugin tests see real distributions and nothing else that is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import importlib_metadata
import packaging.specifiers
import platformdirs
import pytest
import stevedore.named
import yaml
from plugin_sites import Site

# Imported before the site directory hides what is installed.
_NEEDED = (click, importlib_metadata, packaging.specifiers, platformdirs, stevedore.named, yaml)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    before = set(sys.modules)
    directory = tmp_path / "site"
    directory.mkdir()
    library = [entry for entry in sys.path if entry and _is_library(Path(entry))]
    monkeypatch.setattr(sys, "path", [str(directory), *library])
    yield Site(directory)
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if name.startswith("vally_file_") or (file and str(tmp_path) in file):
            del sys.modules[name]


def _is_library(entry: Path) -> bool:
    return (
        entry.is_relative_to(sys.base_prefix)
        and "site-packages" not in entry.parts
        and "dist-packages" not in entry.parts
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The current directory of the imagined command line."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory
