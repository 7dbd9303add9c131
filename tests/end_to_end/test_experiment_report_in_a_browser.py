"""`report.html` of an experiment in Chromium: phones, long and hostile names, accessibility."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vally.testing import run_cli

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
VARIANTS = ["base", "L" * 119, "<img src=x onerror=alert(1)>", "\u8a66\u9a13" * 30]
STIMULI = ["x" * 190, "many words " * 15, "</script><script>alert(1)</script>"]
CUT_LABELS = """() => [...document.querySelectorAll('svg text.name')].filter(label => label.getBBox().x < -1).length"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("experiment")
    graders = [{"type": "output-contains", "config": {"substring": "nowhere"}}]
    stimuli = [{"name": name.strip(), "prompt": "p", "graders": graders} for name in STIMULI]
    spec = {"name": "an eval", "defaults": {"executor": "mock", "runs": 2}, "stimuli": stimuli}
    (root / "eval.yaml").write_text(json.dumps(spec))
    variants = {name: {"overrides": {"model": f"m{number}"}} for number, name in enumerate(VARIANTS)}
    experiment = {
        "name": "E" * 300, "evals": ["eval.yaml"], "vary": ["/defaults/model"], "variants": variants,
        "baseline": "base",
    }  # fmt: skip
    (root / "experiment.yaml").write_text(json.dumps(experiment))
    result = run_cli(["experiment", "run", "experiment.yaml", "--html", "--output-dir", "out"], cwd=root)
    assert result.exit_code == 0, result.stderr
    (path,) = root.glob("out/*/report.html")
    return path


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Any]:
    # The report is made before, because no other event loop runs beside that of the driver.
    with playwright.sync_playwright() as driver:
        # The sandbox of Chromium does not start for root, which is what CI may be.
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"] if os.geteuid() == 0 else []}
        chromium = driver.chromium.launch(**options)
        yield chromium
        chromium.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_a_report_fits_and_is_accessible(browser: Any, report: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
    problems: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_LABELS) == 0
    violations = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(item["id"], item["nodes"][0]["html"][:200]) for item in violations] == []
    assert (problems, len(asked)) == ([], 1)
    page.close()
