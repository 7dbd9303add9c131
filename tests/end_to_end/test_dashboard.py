"""The pages of the dashboard, without a browser: status, markup, links, escaping, speed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hostile_runs import (
    BIDI,
    COMMAS,
    EVERYTHING,
    IMAGE,
    SCRIPT,
    STIMULI,
    grader,
    ordinary_trial,
    write_hostile_run,
    write_ordinary_runs,
    write_results,
)
from page_facts import PageFacts
from starlette.testclient import TestClient

from vally_command_results.server.app import make_app
from vally_command_results.server.demo import write_demo
from vally_command_results.server.guard import AllowedHosts
from vally_command_results.server.site import Site
from vally_command_results.store.opening import open_memory

PAGE_BYTES = 2_000_000
SECONDS = 0.3
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def serve(root: Path) -> tuple[TestClient, Site]:
    site = Site(open_memory(), "directory", [(root, "runs")])
    app = make_app(site, hosts=AllowedHosts.of("127.0.0.1", ()))
    return TestClient(app, base_url="http://127.0.0.1"), site


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("demo")
    write_demo(root)
    client, site = serve(root)
    with client:
        yield client
    site.store.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("hostile")
    write_hostile_run(root / "one")
    client, site = serve(root)
    with client:
        yield client
    site.store.close()


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    root = tmp_path_factory.mktemp("ordinary")
    write_ordinary_runs(root, runs=6, trials=240)
    client, site = serve(root)
    with client:
        yield client
    site.store.close()


def views(client: TestClient) -> dict[str, str]:
    """An address of every page, by name."""
    runs = client.get("/api/runs").json()["items"]
    grouped = next((run for run in runs if run["group"]), runs[0])
    run = next((run for run in runs if not run["group"] and run["complete"]), runs[0])
    outcomes = client.get(f"/api/runs/{run['id']}/outcomes", params={"limit": 1000}).json()["items"]
    failed = next(item["id"] for item in outcomes if item["verdict"] == "fail")
    passed = next(item["id"] for item in outcomes if item["verdict"] == "pass")
    found = {
        "runs": "/",
        "unfolded": f"/?open={grouped['group']}" if grouped["group"] else "/?sort=name",
        "run": f"/runs/{run['id']}",
        "variants": f"/runs/{grouped['id']}?columns=variant&rows=eval&chart=total_tokens&by=verdict",
        "run-outcomes": f"/runs/{run['id']}/outcomes",
        "outcomes": "/outcomes?verdict=fail&sort=-durationMs",
        "trial": f"/outcomes/{failed}",
        "diff": f"/outcomes/{passed}/diff",
        "side-by-side": f"/compare/outcomes?left={passed}&right={failed}",
        "compare-choice": "/compare",
        "graders": "/graders",
        "trends": "/trends",
        "trends-by-stimulus": "/trends?groupBy=stimulus&metric=duration_ms",
    }
    if len(runs) > 1:
        found["compare"] = f"/compare?runs={runs[-1]['id']}&runs={runs[-2]['id']}"
    comparisons = client.get("/api/comparisons").json()["items"]
    if comparisons:
        found["comparison"] = f"/comparisons/{comparisons[0]['id']}"
    return found


def page(client: TestClient, address: str) -> PageFacts:
    answer = client.get(address)
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return PageFacts(answer.text)


NAMES = [
    "runs", "unfolded", "run", "variants", "run-outcomes", "outcomes", "trial", "diff", "compare-choice", "compare",
    "side-by-side", "graders", "trends", "trends-by-stimulus", "comparison",
]  # fmt: skip


@pytest.fixture(scope="module")
def demo_views(demo: TestClient) -> dict[str, str]:
    return views(demo)


@pytest.fixture(scope="module")
def hostile_views(hostile: TestClient) -> dict[str, str]:
    return views(hostile)


@pytest.mark.parametrize("name", NAMES)
def test_markup_of_every_page(demo: TestClient, demo_views: dict[str, str], name: str) -> None:
    facts = page(demo, demo_views[name])
    assert facts.problems == []
    assert facts.unclosed == []
    assert facts.inline == []
    assert len(facts.ids) == len(set(facts.ids))
    assert set(facts.references) <= set(facts.ids)
    assert facts.tags.count("h1") == facts.tags.count("main") == 1
    assert set(facts.controls) <= facts.labels


@pytest.mark.parametrize("name", NAMES)
def test_no_page_names_another_origin(demo: TestClient, demo_views: dict[str, str], name: str) -> None:
    facts = page(demo, demo_views[name])
    assert [address for address in facts.addresses if not address.startswith(("/", "#"))] == []
    assert not any(address.startswith("//") for address in facts.addresses)


def test_all_links_lead_somewhere(demo: TestClient, demo_views: dict[str, str]) -> None:
    """Follows links of each kind of page; at most some of each kind, since lists hold hundreds alike."""
    pending, seen, kinds = ["/", *demo_views.values()], set(), {}
    while pending:
        address, _, fragment = pending.pop().partition("#")
        kind = re.sub(r"[0-9a-f]{32}", "*", address.partition("?")[0])
        if address in seen or kinds.get(kind, 0) >= 4:
            continue
        seen.add(address)
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = demo.get(address)
        assert answer.status_code == 200, address
        if answer.headers["content-type"].startswith("text/html"):
            facts = PageFacts(answer.text)
            assert not fragment or fragment in facts.ids, f"{address}#{fragment}"
            pending += [f"{address}{link}" if link.startswith("#") else link for link in facts.links]
            pending += [link for link in facts.addresses if link.startswith("/static/")]
    assert len(kinds) > 20


def test_pages_and_api_agree(demo: TestClient) -> None:
    run = next(item for item in demo.get("/api/runs").json()["items"] if item["errorCount"] and not item["group"])
    text = page(demo, f"/runs/{run['id']}").text
    assert f"{run['passCount']} of {run['passCount'] + run['failCount']} graded" in text
    assert f"{100 * run['passRate']:.1f}%" in text


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/?nonsense=1", 400, "invalid_params"),
        ("/?since=yesterday", 400, "invalid_params"),
        ("/?sort=beauty", 400, "invalid_params"),
        ("/?limit=1001", 400, "invalid_params"),
        ("/?cursor=AAAA", 400, "invalid_cursor"),
        ("/trends?metric=luck", 400, "invalid_params"),
        ("/runs/ffffffffffffffffffffffffffffffff", 404, "not_found"),
        ("/runs/..%2f..%2fetc", 404, "not_found"),
        ("/outcomes/nothing", 404, "not_found"),
        ("/outcomes/nothing/diff", 404, "not_found"),
        ("/outcomes/nothing/text?part=output", 404, "not_found"),
        ("/comparisons/nothing", 404, "not_found"),
        ("/compare?runs=ffffffffffffffffffffffffffffffff", 400, "invalid_params"),
        ("/no/such/page", 404, "not_found"),
        ("/static/style.css", 404, "not_found"),
        ("/static/..%2f..%2fapp.py", 404, "not_found"),
    ],
)
def test_errors_are_pages_with_status_and_code(demo: TestClient, address: str, status: int, code: str) -> None:
    answer = demo.get(address)
    assert answer.status_code == status
    assert code in answer.text
    assert "Traceback" not in answer.text


def test_empty_fields_of_a_form_are_no_filter(demo: TestClient) -> None:
    total = demo.get("/api/outcomes?limit=1").json()["page"]["total"]
    sent = "q=&evalName=&stimulus=&model=&verdict=&sort=&tag=&grader=&graderPassed=&tool=&minScore=&maxScore="
    assert f"5 of {total} shown" in page(demo, f"/outcomes?{sent}&limit=5").text
    assert page(demo, "/?q=&evalName=&model=&kind=&verdict=&since=&until=").text == page(demo, "/").text


def test_days_include_their_end(demo: TestClient) -> None:
    day = demo.get("/api/runs?kind=eval").json()["items"][0]["startedAt"][:10]
    shown = page(demo, f"/?since={day}&until={day}")
    assert "1 of 1 shown" in shown.text


def test_a_filter_without_matches_says_what_to_do(demo: TestClient) -> None:
    assert "No runs match these filters. Clear filters" in page(demo, "/?q=zzzz").text
    assert "No trials match these filters. Clear filters" in page(demo, "/outcomes?q=zzzz").text


def test_paging_by_links_shows_every_trial_once(demo: TestClient) -> None:
    address: str | None = "/outcomes?limit=90"
    seen: list[str] = []
    while address:
        facts = page(demo, address)
        seen += [link for link in facts.links if re.fullmatch(r"/outcomes/[0-9a-f]{32}", link)]
        address = next((link for link in facts.links if "cursor=" in link), None)
    total = demo.get("/api/outcomes?limit=1").json()["page"]["total"]
    assert len(seen) == len(set(seen)) == total


def test_etags_spare_a_page(demo: TestClient) -> None:
    first = demo.get("/")
    assert first.headers["cache-control"] == "no-cache"
    again = demo.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert demo.get("/trends").headers["etag"] != first.headers["etag"]


def test_assets_are_immutable_and_named_by_content(demo: TestClient) -> None:
    names = [link for link in page(demo, "/").addresses if link.startswith("/static/")]
    assert {name.rpartition(".")[2] for name in names} == {"css", "js", "svg"}
    for name in names:
        answer = demo.get(name)
        assert re.fullmatch(r"/static/[a-z]+-[0-9a-f]{12}\.(css|js|svg)", name)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("compare",)])
def test_hostile_text_is_inert(hostile: TestClient, hostile_views: dict[str, str], name: str) -> None:
    answer = hostile.get(hostile_views[name])
    assert answer.status_code == 200
    facts = PageFacts(answer.text)
    assert facts.problems == []
    assert facts.inline == []
    assert "img" not in facts.tags
    assert facts.tags.count("script") == 1
    assert [words for words in facts.shown if ACTING.search(words)] == []
    assert [link for link in facts.addresses if not link.startswith(("/", "#"))] == []
    assert len(answer.content) < PAGE_BYTES


def test_hostile_text_is_shown(hostile: TestClient, hostile_views: dict[str, str]) -> None:
    shown = page(hostile, hostile_views["trial"]).text
    assert IMAGE in shown
    assert SCRIPT in shown
    assert "safe[U+202E]gnp.exe" in shown
    assert "[U+001B][31mred" in shown


def test_cells_of_the_matrix_lead_to_exactly_their_trials(hostile: TestClient, hostile_views: dict[str, str]) -> None:
    """Whatever signs a name has; one that is too long for an address has no link."""
    links = [link for link in page(hostile, hostile_views["run"]).links if "&stimulus=" in link]
    assert len(links) == len(STIMULI) - 1
    counts = [re.search(r"(\d) of (\d) shown", page(hostile, link).text) for link in links]
    assert sorted(count[0] for count in counts if count) == ["2 of 2 shown"] * 8 + ["3 of 3 shown"]
    assert "2 of 2 shown" in page(hostile, f"/outcomes?{urlencode({'stimulus': COMMAS})}").text


def test_the_api_beside_a_list_answers_about_the_same_trials(hostile: TestClient) -> None:
    """Also when a name holds the comma that separates names there."""
    facts = page(hostile, f"/outcomes?{urlencode({'stimulus': COMMAS})}")
    (address,) = (link for link in facts.links if link.startswith("/api/outcomes"))
    items = hostile.get(address).json()["items"]
    assert [item["stimulus"] for item in items] == [COMMAS, COMMAS]


def test_long_text_is_whole_on_demand(hostile: TestClient, hostile_views: dict[str, str]) -> None:
    trial = hostile_views["trial"]
    assert "4.8 MiB in all" in page(hostile, trial).text
    answer = hostile.get(f"{trial}/text?part=output")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.startswith(EVERYTHING[:40])
    assert len(answer.text) > 5_000_000


def test_rows_for_spreadsheets_hold_no_formula(hostile: TestClient) -> None:
    answer = hostile.get("/outcomes?format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="trials.csv"'
    assert BIDI not in answer.text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "%x", "|x"])
def test_a_formula_is_escaped(text: str) -> None:
    from vally_command_results.server.pages.outcomes import inert

    assert str(inert(text)).startswith("'")


def test_pages_are_fast(ordinary: TestClient) -> None:
    """Processor time, so that other work on the machine does not count; the best of three."""
    for name, address in views(ordinary).items():
        times = []
        for _ in range(3):
            start = time.process_time()
            assert ordinary.get(address).status_code == 200
            times.append(time.process_time() - start)
        assert min(times) < SECONDS, name


def test_heads_of_columns_sort_by_links(demo: TestClient) -> None:
    """The first click sorts, the second turns the order round; filters stay."""
    first = next(link for link in page(demo, "/outcomes?verdict=fail").links if "sort=score" in link)
    assert "verdict=fail" in first
    scores = [item["score"] for item in demo.get(f"/api{first}").json()["items"]]
    assert scores == sorted(scores)
    assert any("sort=-score" in link for link in page(demo, first).links)


def test_close_values_have_ticks_that_differ() -> None:
    from vally_command_results.server.charts_run import tick_words

    assert tick_words([1000.0, 1000.5, 1001.0], "ms") == ["1000 ms", "1000.5 ms", "1001 ms"]
    assert tick_words([2000.0, 4000.0], "ms") == ["2.0 s", "4.0 s"]


def test_deep_nesting_is_cut_not_a_failure(tmp_path: Path) -> None:
    nested = grader("deepest", passed=False)
    arguments: object = "end"
    for _ in range(400):
        nested = grader("outer", passed=False, details=[nested])
        arguments = [arguments]
    record = ordinary_trial(0, 0)
    record["gradeResult"]["details"] = [nested]
    record["trajectory"]["events"][0]["data"]["arguments"] = {"deep": arguments}
    write_results(tmp_path / "one", [record])
    client, site = serve(tmp_path)
    trial = client.get("/api/outcomes").json()["items"][0]["id"]
    facts = page(client, f"/outcomes/{trial}")
    assert facts.text.count("about outer") == 11
    assert "Further results below this one are in the record." in facts.text
    assert page(client, f"/compare/outcomes?left={trial}&right={trial}").problems == []
    site.store.close()


def test_json_links_hold_the_filters(demo: TestClient) -> None:
    for address in (
        "/?kind=eval&since=2026-06-05",
        "/outcomes?verdict=fail",
        "/graders?model=gpt-5-mini",
        "/trends?evalName=bug-fixing",
    ):
        (link,) = [link for link in page(demo, address).links if link.startswith("/api/") and "?" in link]
        assert demo.get(link).status_code == 200
        assert address.partition("?")[2].split("&")[0] in link


def head(path: str) -> str:
    return f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n"


@pytest.fixture(scope="module")
def diffs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """Trials with diffs, by name."""
    root = tmp_path_factory.mktemp("diffs")
    added = "".join(f"+line {number}\n" for number in range(7000))
    texts = {
        "python": f"{head('a.py')}@@ -1,2 +1,2 @@\n def f():\n-    return  1\n+    return 1\n",
        "long": f"{head('big.txt')}@@ -0,0 +1,7000 @@\n{added}{head('b.txt')}@@ -1 +1 @@\n-old\n+new\n",
        "foreign": "--- a\n+++ b\n",
        "empty": "",
        "none": None,
    }
    records = []
    for place, (name, text) in enumerate(texts.items()):
        record = {**ordinary_trial(0, place), "stimulus": name, "itemId": name}
        record["trajectory"] = {**record["trajectory"], "turnDiffs": [{"turn": 1, "diff": texts["python"]}]}
        if text is not None:
            record["trajectory"]["diff"] = text
        records.append(record)
    write_results(root / "one", records)
    client, site = serve(root)
    outcomes = client.get("/api/outcomes").json()["items"]
    yield client, {item["stimulus"]: f"/outcomes/{item['id']}/diff" for item in outcomes}
    site.store.close()


def test_a_diff_has_line_numbers_and_colours(diffs: tuple[TestClient, dict[str, str]]) -> None:
    client, addresses = diffs
    text = client.get(addresses["python"]).text
    assert '<span class="tok-keyword">def</span>' in text
    assert re.search(r'<tr class="del"><td class="no">2</td><td class="no"></td>', text)
    assert re.search(r'<tr class="add"><td class="no"></td><td class="no">2</td>', text)


def test_changes_of_white_space_can_be_left_out(diffs: tuple[TestClient, dict[str, str]]) -> None:
    client, addresses = diffs
    text = client.get(f"{addresses['python']}?whitespace=ignore").text
    assert '<tr class="del">' not in text
    assert '<tr class="same"><td class="no">2</td><td class="no">2</td>' in text


def test_long_files_are_folded_and_shown_in_parts(diffs: tuple[TestClient, dict[str, str]]) -> None:
    client, addresses = diffs
    whole = page(client, addresses["long"])
    assert "line 10" not in whole.text
    assert "new" in whole.text
    link = next(link for link in whole.links if "file=0" in link)
    part = page(client, link)
    assert "line 5990" in part.text
    assert "line 6500" not in part.text
    assert "line 6500" in page(client, next(link for link in part.links if "start=" in link)).text
    assert client.get(f"{addresses['long']}?file=9").status_code == 404


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none", "No diff to show: no diff was recorded."),
        ("empty", "Nothing was changed."),
        ("foreign", "The recorded diff has no file in the form of git."),
    ],
)
def test_what_has_no_lines_is_said_in_a_sentence(
    diffs: tuple[TestClient, dict[str, str]], name: str, sentence: str
) -> None:
    client, addresses = diffs
    assert sentence in page(client, addresses[name]).text


def test_the_diff_of_a_turn(diffs: tuple[TestClient, dict[str, str]]) -> None:
    client, addresses = diffs
    facts = page(client, addresses["none"])
    link = next(link for link in facts.links if "turn=1" in link)
    assert "a.py" in page(client, link).text
    assert "no diff of turn 7 was recorded" in page(client, f"{addresses['none']}?turn=7").text


def test_the_demonstration_is_the_same_at_every_call(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_demo(tmp_path / name)
    files = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) > 20
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)


def test_the_demonstration_has_something_of_everything(demo: TestClient) -> None:
    runs = demo.get("/api/runs").json()["items"]
    assert {run["verdict"] for run in runs} >= {"pass", "fail", "partial", "incomplete"}
    assert {run["kind"] for run in runs} == {"eval", "experiment"}
    assert demo.get("/api/comparisons").json()["items"]
    verdicts = {item["verdict"] for item in demo.get("/api/outcomes?limit=1000").json()["items"]}
    assert verdicts == {"pass", "fail", "error", "skipped"}
