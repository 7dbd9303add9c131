"""The dashboard in Chromium: errors of the console, accessibility, keyboard, phones, no scripts, hostile text.

Screenshots of all pages go to the directory that `VALLY_SCREENSHOTS` names, else to a temporary one; it is printed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import IN_A_BROWSER, launched, playwright, violations
from hostile_runs import ordinary_trial, write_hostile_run, write_results

from vally_command_results.server.demo import write_demo

pytestmark = IN_A_BROWSER
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
UNFOLD = """element => {
    for (let up = element; up; up = up.parentElement) if (up.tagName === 'DETAILS') up.open = true;
}"""
COUNT_STOPS = """() => {
    let count = 0;
    const stops = 'a[href], button, input:not([type=hidden]), select, summary, [tabindex="0"]';
    for (const element of document.querySelectorAll(stops)) {
        if (element.checkVisibility({visibilityProperty: true}) && element.tabIndex >= 0) {
            element.dataset.wanted = count++;
        }
    }
    return count;
}"""
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 640}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


class Server:
    """`vally serve` in a process of its own."""

    def __init__(self, root: Path, *words: str) -> None:
        self.root = root
        environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "vally", "serve", *(words or ["runs"]), "--port", "0"]
        self._process = subprocess.Popen(
            command,
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environ,
        )
        assert self._process.stdout is not None
        line = next(line for line in self._process.stdout if "Dashboard" in line)
        self.base = line.split()[-1].rstrip("/")

    def api(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.base}/api{path}") as answer:
            return json.load(answer)

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(20) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("dashboard")
    write_demo(root / "runs" / "demo")
    write_hostile_run(root / "runs" / "hostile")
    running = Server(root)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def addresses(server: Server) -> dict[str, str]:
    """An address of every page by name; those of the hostile run begin with its name."""
    runs = server.api("/runs")["items"]
    hostile = next(run for run in runs if "hostile" in run["source"])
    ordinary = [run for run in runs if "nightly" in run["source"] and run["complete"]]
    running = next(run for run in runs if not run["complete"])
    group = next(run for run in runs if run["group"])
    found = {
        "runs": f"/?open={group['group']}",
        "runs-empty": "/?q=nothing-is-called-so",
        "running": f"/runs/{running['id']}",
        "variants": f"/runs/{group['id']}?columns=variant",
        "compare": f"/compare?runs={ordinary[3]['id']}&runs={ordinary[2]['id']}",
        "compare-variants": "/compare?" + "&".join(f"runs={run['id']}" for run in runs if run["group"]),
        "compare-choice": "/compare",
        "outcomes": "/outcomes?verdict=fail&tag=area:bugs",
        "graders": "/graders",
        "trends": "/trends",
        "trends-one": "/trends?evalName=bug-fixing",
        "error": "/no/such/page",
    }
    for comparison in server.api("/comparisons")["items"]:
        found["comparison" if comparison["experiment"] == "skill-check" else "hostile-comparison"] = (
            f"/comparisons/{comparison['id']}"
        )
    for name, run in (("", ordinary[0]), ("hostile-", hostile)):
        outcomes = server.api(f"/runs/{run['id']}/outcomes?limit=1000")["items"]
        passed = [item["id"] for item in outcomes if item["verdict"] == "pass"]
        failed = [item["id"] for item in outcomes if item["verdict"] == "fail"]
        broken = next(item["id"] for item in outcomes if item["verdict"] == "error")
        found |= {
            f"{name}run": f"/runs/{run['id']}",
            f"{name}run-outcomes": f"/runs/{run['id']}/outcomes",
            f"{name}trial": f"/outcomes/{failed[0]}",
            f"{name}trial-passed": f"/outcomes/{passed[-1]}",
            f"{name}trial-error": f"/outcomes/{broken}",
            f"{name}diff": f"/outcomes/{passed[0]}/diff",
            f"{name}side-by-side": f"/compare/outcomes?left={passed[0]}&right={failed[0]}",
        }
    return found


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("VALLY_SCREENSHOTS")
    directory = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    directory.mkdir(parents=True, exist_ok=True)
    print(f"screenshots are in {directory}")
    return directory


class Tab:
    """A page of the browser that notes what it must not do."""

    def __init__(self, browser: Any, server: Server, **options: Any) -> None:
        self._base = server.base
        self._context = browser.new_context(**{"viewport": WIDE, **options})
        self.page = self._context.new_page()
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self._note_dialog)
        self._context.route(re.compile(f"^(?!{re.escape(server.base)}/)"), self._refuse)

    def _note_console(self, message: Any) -> None:
        # The browser says itself that an error page has an error's status.
        if message.type in ("error", "warning") and "404 (Not Found)" not in message.text:
            self.problems.append(f"{message.type}: {message.text}")

    def _note_dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _refuse(self, route: Any) -> None:
        self.problems.append(f"asked for {route.request.url}")
        route.abort()

    def open(self, path: str) -> Any:
        self.page.goto(self._base + path)
        return self.page

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def open_tab(browser: Any, server: Server) -> Iterator[Any]:
    tabs: list[Tab] = []

    def make(**options: Any) -> Tab:
        tabs.append(Tab(browser, server, **options))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.close()


def active(page: Any) -> str:
    return str(page.evaluate("(document.activeElement.textContent || document.activeElement.name || '').trim()"))


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_free_of_errors(
    open_tab: Any, addresses: dict[str, str], screenshots: Path, scheme: str, viewport: dict[str, int]
) -> None:
    tab = open_tab(color_scheme=scheme, viewport=viewport)
    found = []
    for name, path in addresses.items():
        page = tab.open(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > viewport["width"]:
            found.append(f"{name}: {width} pixels wide")
        for violation in violations(page, runOnly={"type": "tag", "values": TAGS}):
            nodes = "; ".join(node["html"][:160] for node in violation["nodes"][:3])
            found.append(f"{name}: {violation['id']} ({violation['impact']}): {nodes}")
        page.screenshot(path=screenshots / f"{name}-{scheme}-{viewport['width']}.png", full_page=True)
    assert found == []
    assert tab.problems == []


def test_hostile_text_does_nothing(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab()
    for name, path in addresses.items():
        if not name.startswith("hostile"):
            continue
        page = tab.open(path)
        for details in page.query_selector_all("details:not([open]) > summary"):
            details.evaluate("summary => { summary.parentElement.open = true; }")
        assert page.evaluate("window.attacked") is None
        assert page.query_selector_all("main script, main img, main iframe, main [onerror], main [onload]") == []
        assert page.query_selector_all("main a[href^='javascript:'], main a[href^='http']") == []
    assert tab.problems == []


def test_a_text_is_shown_whole_in_its_place(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab()
    page = tab.open(addresses["hostile-trial"])
    more = page.locator("#timeline [data-more]").last
    more.evaluate(UNFOLD)
    before = len(more.locator("pre").text_content())
    more.locator(".more a").click()
    playwright.expect(more.locator(".more")).to_have_count(0)
    assert len(more.locator("pre").text_content()) > before
    assert "[U+202E]" in more.locator("pre").text_content()
    assert tab.problems == []


def test_the_skip_link_comes_first_and_leads_to_the_content(open_tab: Any) -> None:
    page = open_tab().open("/")
    page.keyboard.press("Tab")
    assert active(page) == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_tabulator_key_reaches_everything_and_is_never_caught(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab()
    for name in ("runs", "run", "trial", "diff", "compare", "graders", "trends"):
        page = tab.open(addresses[name])
        wanted = page.evaluate(COUNT_STOPS)
        seen = set()
        for _ in range(4 * wanted):
            page.keyboard.press("Tab")
            place = page.evaluate("document.activeElement.dataset.wanted ?? ''")
            seen.add(place)
            if len(seen - {""}) == wanted:
                break
        assert len(seen - {""}) == wanted, name
        outlines = "e => { e.focus({focusVisible: true}); const s = getComputedStyle(e); return s.outlineStyle; }"
        assert page.locator("main a[href]").first.evaluate(outlines) != "none"
    assert tab.problems == []


def test_runs_are_chosen_and_compared_by_keyboard(open_tab: Any) -> None:
    page = open_tab().open("/")
    boxes = page.locator("input[name=runs]")
    for place in (1, 2):
        boxes.nth(place).focus()
        page.keyboard.press("Space")
    assert page.locator("#compare-hint").text_content() == "2 chosen."
    page.locator("#compare-button").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?*")
    assert page.locator("h1").text_content() == "Compare 2 runs"


def test_one_run_cannot_be_compared(open_tab: Any) -> None:
    page = open_tab().open("/")
    page.locator("input[name=runs]").first.check()
    page.locator("#compare-button").press("Enter")
    assert page.url.endswith("/")
    assert page.locator("#live").text_content() == "Choose 2 to 6."


def test_keys_move_and_jump(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab()
    page = tab.open("/")
    page.keyboard.press("j")
    first = active(page)
    page.keyboard.press("j")
    assert active(page) != first
    page.keyboard.press("k")
    assert active(page) == first
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "site-search"
    page.keyboard.type("race")
    page.keyboard.press("Enter")
    page.wait_for_url("**/outcomes?q=race")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/trends")
    page = tab.open(addresses["trial"])
    page.keyboard.press("n")
    page.wait_for_url(lambda url: not url.endswith(addresses["trial"]))
    assert tab.problems == []


def test_everything_can_be_read_without_scripts(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab(java_script_enabled=False)
    for name, path in addresses.items():
        page = tab.open(path)
        assert page.locator("h1").count() == 1, name
        assert page.locator("main").inner_text().strip(), name
    page = tab.open("/")
    page.locator("#f-verdict").select_option("pass")
    page.get_by_role("button", name="Apply").click()
    assert "verdict=pass" in page.url
    assert page.locator("tbody .verdict.fail").count() == 0
    page = tab.open(addresses["trial"])
    call = page.locator("#timeline .kind-tool_call details", has_text="edit").first
    assert not call.locator("pre").first.is_visible()
    call.locator("summary").click()
    assert call.locator("pre").first.is_visible()
    page.locator("#t-show").select_option("errors")
    page.locator("#timeline").get_by_role("button", name="Show").click()
    assert "show=errors" in page.url
    assert tab.problems == []


def test_rows_are_filtered_as_one_types(open_tab: Any, addresses: dict[str, str]) -> None:
    page = open_tab().open(addresses["run-outcomes"])
    page.get_by_label("Filter these rows").fill("race-in-cache")
    shown = page.locator("tbody tr:visible")
    assert shown.count() == 6
    assert page.locator("#live").text_content().startswith("6 of ")


def test_a_chart_tells_its_values_on_hover(open_tab: Any, addresses: dict[str, str]) -> None:
    tab = open_tab()
    page = tab.open(addresses["run"])
    page.locator("#charts rect.column").first.hover()
    assert re.search(r"\d", page.locator(".tooltip").text_content())
    assert page.locator(".tooltip").is_visible()
    assert tab.problems == []


def test_a_growing_run_is_renewed_without_moving_the_focus(browser: Any, tmp_path: Path) -> None:
    records = [ordinary_trial(0, number) for number in range(9)]
    write_results(tmp_path / "runs" / "one", records[:4])
    server = Server(tmp_path)
    try:
        run = server.api("/runs")["items"][0]["id"]
        tab = Tab(browser, server)
        page = tab.open(f"/runs/{run}/outcomes")
        assert page.locator("tbody tr").count() == 4
        assert page.locator("#refresh").is_visible()
        page.locator("#f-q").focus()
        write_results(tmp_path / "runs" / "one", records)
        playwright.expect(page.locator("tbody tr")).to_have_count(9, timeout=60_000)
        assert page.evaluate("document.activeElement.id") == "f-q"
        assert page.locator("#live").text_content() == "The page was renewed"
        page.locator("#refresh-pause").click()
        assert page.locator("#refresh-pause").get_attribute("aria-pressed") == "true"
        assert tab.problems == []
        tab.close()
    finally:
        server.stop()


def test_the_demonstration_is_served_without_any_results(browser: Any, tmp_path: Path) -> None:
    server = Server(tmp_path, "--demo")
    try:
        tab = Tab(browser, server)
        page = tab.open("/")
        assert page.locator("tbody").count() == 10
        page.locator('tbody th a[href^="/runs/"]').first.click()
        playwright.expect(page.locator("#matrix")).to_be_visible()
        assert tab.problems == []
        tab.close()
    finally:
        server.stop()
    assert list(tmp_path.iterdir()) == []
