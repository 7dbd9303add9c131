"""Spans and reports of whole runs: where they go, what a broken endpoint changes, and that no secret is in them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally.testing import CliResult, ProjectBuilder, run_cli

SAYS_HELLO = {"type": "output-contains", "config": {"substring": "hello"}}
SECRET = "s3cr3t-value-of-a-token"
HEADER = "k3y-of-the-endpoint"


def project(root: Path) -> None:
    made = ProjectBuilder(root)
    fixtures = {
        "passes": {"output": f"hello {SECRET}"},
        "fails": {"output": f"no {SECRET}"},
        "errors": {"error": {"message": f"refused {SECRET}", "code": "provider-error"}},
    }
    for name, content in fixtures.items():
        made.file(f"evals/e/fixtures/{name}.json", json.dumps(content))
    stimuli = [
        {"name": name, "prompt": f"say {SECRET}", "graders": [SAYS_HELLO]} for name in ("fails", "passes", "errors")
    ]
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    made.eval("e", stimuli, defaults={"executor": executor, "runs": 2})


def evaluate(root: Path, *words: str, env: dict[str, str] | None = None) -> CliResult:
    return run_cli(["eval", "-e", "evals/e/eval.yaml", "--output-dir", "out", *words], cwd=root, env=env)


def trials_of(text: str) -> list[str]:
    """Item ids of the trial spans, checking that each line is a request of its own with parents that exist."""
    spans = [
        span
        for line in text.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    ids = {span["spanId"] for span in spans}
    assert {span["parentSpanId"] for span in spans if span.get("parentSpanId")} <= ids
    assert [span["name"] for span in spans if not span.get("parentSpanId")] == ["vally.run"]
    return [
        entry["value"]["stringValue"]
        for span in spans
        if span["name"] == "vally.trial"
        for entry in span["attributes"]
        if entry["key"] == "vally.item_id"
    ]


def test_spans_of_a_run(tmp_path: Path) -> None:
    project(tmp_path)
    result = evaluate(tmp_path)
    assert result.run_dir is not None
    text = (result.run_dir / "otel-spans.jsonl").read_text(encoding="utf-8")
    trials = trials_of(text)
    assert len(text.splitlines()) == len(trials) == len(set(trials)) == 6
    assert "  Spans    → out/" in result.stdout
    assert "running reporter" not in result.stderr


def test_spans_of_a_run_that_was_continued(tmp_path: Path) -> None:
    project(tmp_path)
    first = evaluate(tmp_path, "--fail-fast", "--workers", "1", "--stimulus", "!errors")
    assert first.run_dir is not None
    path = first.run_dir / "otel-spans.jsonl"
    before = trials_of(path.read_text(encoding="utf-8"))
    assert 1 <= len(before) < 4
    after: list[str] = []
    # Each part ends at the next trial that fails, because the option is one of the run.
    while len(after) < 4:
        seen = len(after)
        assert run_cli(["eval", "--resume", str(first.run_dir)], cwd=tmp_path).exit_code < 2
        after = trials_of(path.read_text(encoding="utf-8"))
        assert len(after) > seen
    assert len(after) == len(set(after)) == 4
    assert set(before) <= set(after)


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    got: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers.get("api-key", ""), body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_to_an_endpoint(tmp_path: Path, collector: Any) -> None:
    url, got = collector
    project(tmp_path)
    env = {"OTEL_EXPORTER_OTLP_HEADERS": f"api-key={HEADER}", "MY_TOKEN": SECRET}
    result = evaluate(tmp_path, "--otlp-endpoint", url, env=env)
    assert result.run_dir is not None
    assert not (result.run_dir / "otel-spans.jsonl").exists()
    assert "Spans" not in result.stdout
    assert {(path, key) for path, key, _ in got} == {("/v1/traces", HEADER)}
    text = b"\n".join(body for *_, body in got).decode()
    assert len(trials_of(text)) == 6
    assert SECRET not in text
    written = [path.read_bytes() for path in result.run_dir.rglob("*") if path.is_file()]
    assert not [data for data in written if HEADER.encode() in data]


def test_an_endpoint_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    project(tmp_path)
    good = evaluate(tmp_path)
    bad = evaluate(tmp_path, "--otlp-endpoint", "http://127.0.0.1:1/otlp")
    assert bad.exit_code == good.exit_code == 1
    warnings = [line for line in bad.stderr.splitlines() if "/otlp/v1/traces" in line]
    assert warnings == [
        "warning: spans of 6 of 6 trials were not sent to http://127.0.0.1:1/otlp/v1/traces: Connection refused"
    ]

    def outcomes(result: CliResult) -> list[Any]:
        return sorted((record["itemId"], record["status"]) for record in result.records[:-1])

    assert outcomes(bad) == outcomes(good)


def test_credentials_in_the_url_are_refused_without_repeating_them(tmp_path: Path) -> None:
    project(tmp_path)
    result = evaluate(tmp_path, "--otlp-endpoint", f"https://user:{SECRET}@host")
    assert result.exit_code == 2
    assert SECRET not in result.stdout + result.stderr
    assert not (tmp_path / "out").exists()


def test_no_report_holds_a_secret(tmp_path: Path) -> None:
    project(tmp_path)
    env = {
        "MY_TOKEN": SECRET,
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    result = evaluate(tmp_path, "--html", "--junit", "--verbose", env=env)
    assert result.run_dir is not None
    names = {"eval-results.html", "eval-results.md", "eval-results.junit.xml", "otel-spans.jsonl", "results.jsonl"}
    assert names <= {path.name for path in result.run_dir.iterdir()}
    for path in [tmp_path / "summary.md", *(path for path in result.run_dir.rglob("*") if path.is_file())]:
        assert SECRET.encode() not in path.read_bytes(), path.name
    assert SECRET not in result.stdout + result.stderr
    assert "refused <redacted:MY_TOKEN>" in result.stdout
    page = (result.run_dir / "eval-results.html").read_text(encoding="utf-8")
    assert "First error: refused &lt;redacted:MY_TOKEN&gt;" in page
