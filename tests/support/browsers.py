"""The Chromium of this machine, driven by tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_A_BROWSER = [
    pytest.mark.heavy,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@contextmanager
def launched() -> Iterator[Any]:
    """A running browser; no other event loop runs in this thread meanwhile."""
    with playwright.sync_playwright() as driver:
        # The sandbox of Chromium does not start for root, which is what CI may be.
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"] if os.geteuid() == 0 else []}
        chromium = driver.chromium.launch(**options)
        yield chromium
        chromium.close()


def violations(page: Any, **options: Any) -> list[dict[str, Any]]:
    """What axe-core finds on a page."""
    found = axe.Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return list(found)
