"""Pages that runs and experiments leave behind, in Chromium: phones, long and hostile names, accessibility."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import IN_A_BROWSER, launched, violations

from vally.testing import run_cli

pytestmark = IN_A_BROWSER
VARIANTS = ["base", "L" * 119, "<img src=x onerror=alert(1)>", "\u8a66\u9a13" * 30]
STIMULI = ["x" * 190, "many words " * 15, "</script><script>alert(1)</script>", "hostile", "tools", "broken"]
TEXT = "<script>alert(2)</script>\x1b[31m \u202e " + "w" * 5000
FIXTURES: dict[str, dict[str, Any]] = {
    "hostile": {"output": TEXT, "files": {"a.txt": TEXT}},
    "tools": {
        "events": [
            {"type": "user_message", "data": {"content": TEXT}},
            {"type": "tool_call", "data": {"toolName": TEXT, "toolCallId": "c", "arguments": {"command": TEXT}}},
            {"type": "tool_result", "data": {"toolName": TEXT, "toolCallId": "c", "success": False, "result": TEXT}},
            {"type": "assistant_message", "data": {"content": TEXT}},
        ]
    },
    "broken": {"error": {"message": TEXT, "code": "agent-crashed"}},
}
CUT_LABELS = """() => [...document.querySelectorAll('svg text.name')].filter(label => label.getBBox().x < -1).length"""
UNFOLD = """() => { for (const details of document.querySelectorAll('details')) details.open = true; }"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("experiment")
    graders = [{"type": "output-contains", "config": {"substring": "nowhere"}}, {"type": "diff-empty"}]
    stimuli = [{"name": name.strip(), "prompt": "p", "graders": graders} for name in STIMULI]
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    spec = {"name": "an eval", "defaults": {"executor": executor, "runs": 2}, "stimuli": stimuli}
    (root / "fixtures").mkdir()
    for name, fixture in FIXTURES.items():
        (root / "fixtures" / f"{name}.json").write_text(json.dumps(fixture))
    (root / "eval.yaml").write_text(json.dumps(spec))
    variants = {name: {"overrides": {"model": f"m{number}"}} for number, name in enumerate(VARIANTS)}
    experiment = {
        "name": "E" * 300, "evals": ["eval.yaml"], "vary": ["/defaults/model"], "variants": variants,
        "baseline": "base",
    }  # fmt: skip
    (root / "experiment.yaml").write_text(json.dumps(experiment))
    words = {"eval": ["eval", "-e", "eval.yaml"], "experiment": ["experiment", "run", "experiment.yaml"]}
    for name, command in words.items():
        result = run_cli([*command, "--html", "--output-dir", name], cwd=root)
        assert (result.exit_code, result.run_dir is not None) == (1, True), result.stderr
    places = {
        "eval": "eval/*/eval-results.html",
        "experiment": "experiment/*/report.html",
        "trials": "experiment/*/eval-results.html",
    }
    found = {name: list(root.glob(place)) for name, place in places.items()}
    return {name: path for name, (path,) in found.items()}


@pytest.fixture(scope="module")
def browser(reports: object) -> Iterator[Any]:
    # The reports are made before, because no other event loop runs beside that of the driver.
    with launched() as chromium:
        yield chromium


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("name", ["eval", "experiment", "trials"])
def test_a_report_fits_and_is_accessible(
    browser: Any, reports: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
    problems: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(reports[name].as_uri())
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_LABELS) == 0
    assert [(item["id"], item["nodes"][0]["html"][:200]) for item in violations(page)] == []
    assert (problems, len(asked)) == ([], 1)
    page.close()
