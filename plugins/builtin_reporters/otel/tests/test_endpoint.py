"""Spans by HTTP: to a server on this machine that answers, fails, redirects or hangs."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally import GraderResult
from vally.testing import ScriptedRun, trial_result
from vally_reporter_otel import endpoint
from vally_reporter_otel.endpoint import EndpointDelivery, parse_headers, traces_url
from vally_reporter_otel.reporter import OtelReporter


@dataclass
class Collector:
    """What a server got; it answers with `statuses` in turn, then with 200."""

    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    made.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.requests.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            made.gate.wait(30)
            self.send_response(made.statuses.pop(0) if made.statuses else 200)
            self.send_header("Location", f"{made.url}/elsewhere")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: Any) -> None:
            """A client that gave up is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.gate.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint.time, "sleep", lambda _: None)


def results(count: int) -> list[Any]:
    grade = GraderResult.verdict(True, "e", name="g")
    return [trial_result("s", grade, trial_index=index, total_trials=count) for index in range(count)]


def test_the_bodies_are_those_of_the_file(tmp_path: Path, collector: Collector) -> None:
    file = ScriptedRun(tmp_path / "file", results(3)).play(OtelReporter()).artifacts["Spans"]
    run = ScriptedRun(
        tmp_path / "sent",
        results(3),
        environ={"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s%20ecret, x-team=a"},
        flags={"otlp-endpoint": collector.url},
    )
    played = run.play(OtelReporter())
    assert (played.artifacts, played.stderr) == ({}, "")
    assert not (run.run_dir / "otel-spans.jsonl").exists()
    assert [body for _, _, body in collector.requests] == file.read_bytes().splitlines()
    for path, headers, body in collector.requests:
        assert path == "/v1/traces"
        assert headers["content-type"] == "application/json"
        assert (headers["api-key"], headers["x-team"]) == ("s ecret", "a")
        assert json.loads(body)["resourceSpans"]


def test_a_failure_is_tried_again(collector: Collector) -> None:
    collector.statuses[:] = [503, 429]
    delivery = EndpointDelivery(collector.url)
    delivery.send(b"{}")
    assert delivery.close() is None
    assert len(collector.requests) == 3


def test_three_failures_are_one_warning(tmp_path: Path, collector: Collector) -> None:
    collector.statuses[:] = [500] * 20
    run = ScriptedRun(tmp_path, results(4), flags={"otlp-endpoint": collector.url})
    played = run.play(OtelReporter())
    assert played.stderr == (
        f"warning: spans of 4 of 4 trials were not sent to {collector.url}/v1/traces: HTTP status 500\n"
    )
    # Three tries for the first, one for each of the others.
    assert len(collector.requests) == 3 + 3


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_a_refusal_is_not_tried_again(collector: Collector, status: int) -> None:
    collector.statuses[:] = [status]
    delivery = EndpointDelivery(collector.url)
    delivery.send(b"{}")
    problem = delivery.close()
    assert problem is not None
    assert problem.endswith(f"HTTP status {status}")
    assert len(collector.requests) == 1


def test_headers_do_not_follow_a_redirect(collector: Collector) -> None:
    collector.statuses[:] = [302]
    delivery = EndpointDelivery(collector.url, "api-key=secret")
    delivery.send(b"{}")
    problem = delivery.close()
    assert problem is not None
    assert problem.endswith("HTTP status 302")
    assert len(collector.requests) == 1


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    delivery = EndpointDelivery(f"http://127.0.0.1:{port}/base?key=hidden")
    delivery.send(b"{}")
    problem = delivery.close()
    assert problem is not None
    assert problem.startswith(f"spans of 1 of 1 trials were not sent to http://127.0.0.1:{port}/base/v1/traces: ")
    assert "hidden" not in problem


def test_a_slow_endpoint_delays_nobody(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_WAITING", 3)
    collector.gate.clear()
    delivery = EndpointDelivery(collector.url)
    for _ in range(50):
        delivery.send(b"{}")
    problem = delivery.close(within_s=0.2)
    assert problem is not None
    assert problem.startswith("spans of 50 of 50 trials were not sent")
    assert problem.endswith("the endpoint is too slow")


def test_an_endpoint_that_hangs_is_given_up(collector: Collector) -> None:
    collector.gate.clear()
    delivery = EndpointDelivery(collector.url, timeout_s=0.1)
    delivery.send(b"{}")
    problem = delivery.close()
    assert problem is not None
    assert "timed out" in problem
    assert len(collector.requests) == 3


@pytest.mark.parametrize(
    ("url", "sent_to"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("https://h/otlp", "https://h/otlp/v1/traces"),
        ("https://h/v1/traces", "https://h/v1/traces"),
        ("https://h/otlp/v1/traces/", "https://h/otlp/v1/traces/"),
        ("https://h/otlp?k=v", "https://h/otlp/v1/traces?k=v"),
    ],
)
def test_urls(url: str, sent_to: str) -> None:
    assert traces_url(url) == sent_to


@pytest.mark.parametrize(
    ("text", "headers", "is_sound"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        (" a = b , c=d%2Ce, ", {"a": "b", "c": "d,e"}, True),
        ("authorization=Basic dXNlcg==", {"authorization": "Basic dXNlcg=="}, True),
        ("hunter2", {}, False),
        ("a b=hunter2,c=d", {"c": "d"}, False),
        ("a=x%0Ahunter2", {}, False),
        ("a=hunter2ä", {}, False),
    ],
)
def test_headers(text: str, headers: dict[str, str], is_sound: bool) -> None:
    found, problem = parse_headers(text)
    assert found == headers
    assert (problem is None) == is_sound
    assert "hunter2" not in (problem or "")
