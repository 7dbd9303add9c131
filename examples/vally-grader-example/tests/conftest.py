"""Both forms of the plugin, loaded as `--grader-plugin` loads them, so that nothing need be installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vally import PluginHost
from vally.testing import plugin_host

ROOT = Path(__file__).resolve().parents[1]
FORMS = {"package": ROOT, "file": ROOT / "one_file.py"}


@pytest.fixture(params=FORMS)
def plugins(request: pytest.FixtureRequest) -> Iterator[PluginHost]:
    """A host with this plugin alone."""
    path = list(sys.path)
    yield plugin_host(specifiers=[("grader", str(FORMS[request.param]))])
    sys.path[:] = path
