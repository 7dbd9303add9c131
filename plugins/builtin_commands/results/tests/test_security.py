"""What the server refuses: other hosts, other methods, other directories, other origins, too much."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path
from typing import Any

import pytest

from vally.testing import run_cli
from vally_command_results.server.guard import AllowedHosts


@pytest.fixture
def outcome(kit: Any, trial: Any) -> str:
    """An outcome with artifacts."""
    kit.run(records=[trial("s", 0)])
    kit.write(
        "runs/one/e/s/m/0/metadata.json",
        text='{"evalFilePath": "evals/config/eval.yaml", "stimulusName": "s", "model": "gpt-x", "trialIndex": 0}',
    )
    kit.write("runs/one/e/s/m/0/artifacts/out/report.txt", text="<script>alert(1)</script>")
    kit.write("runs/one/e/s/m/0/artifacts/.hidden", text="hidden")
    kit.write("secret.txt", text="secret")
    root = kit.root / "runs/one/e/s/m/0/artifacts"
    (root / "link.txt").symlink_to(kit.root / "secret.txt")
    (root / "linked").symlink_to(kit.root)
    kit.ingest()
    return str(kit.get("/outcomes")["items"][0]["id"])


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.example", "[::2]", "user@localhost"]
)
@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/x.css", "/runs/x"])
def test_other_hosts_are_refused_everywhere(kit: Any, host: str, path: str) -> None:
    answer = kit.client().get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert "host_not_allowed" in answer.text


@pytest.mark.parametrize("host", ["LOCALHOST:1", "localhost", "127.0.0.1", "127.0.0.1:3200", "[::1]", "[::1]:80"])
def test_names_of_this_machine_are_accepted(kit: Any, host: str) -> None:
    assert kit.client().get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("listening", "further", "host", "accepted"),
    [
        ("0.0.0.0", [], "192.168.1.5", False),
        ("0.0.0.0", ["192.168.1.5"], "192.168.1.5:3200", True),
        ("::", [], "[fe80::1]", False),
        ("results.example", [], "Results.Example:80", True),
        ("127.0.0.1", ["*.example"], "a.example", True),
        ("127.0.0.1", ["*.example"], "example", False),
        ("127.0.0.1", ["*.example"], "badexample", False),
        ("127.0.0.1", ["*"], "anything", True),
        ("127.0.0.1", [], None, False),
    ],
)
def test_which_hosts_are_allowed(listening: str, further: list[str], host: str | None, accepted: bool) -> None:
    assert AllowedHosts.of(listening, further).accepts(host) is accepted


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_allowed(kit: Any, method: str) -> None:
    answer = kit.client().request(method, "/api/runs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_body_is_refused(kit: Any) -> None:
    answer = kit.client().request("GET", "/api/runs", content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_cross_origin_headers_come_with_the_option_only(kit: Any) -> None:
    plain = kit.client().get("/api/runs", headers={"Origin": "http://evil.example"})
    assert not [name for name in plain.headers if name.startswith("access-control")]
    assert plain.headers["cross-origin-resource-policy"] == "same-origin"
    shared = kit.client(cors=True)
    answer = shared.get("/api/runs")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    assert shared.options("/api/runs").status_code == 204
    assert "access-control-allow-origin" not in shared.get("/nothing").headers


def test_every_answer_has_the_headers(kit: Any) -> None:
    for path in ("/api/runs", "/api/nothing"):
        headers = kit.client().get(path).headers
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


@pytest.mark.parametrize("query", ["q=" + "x" * 1025, "&".join(f"model={'y' * 900}" for _ in range(10))])
def test_long_requests_are_refused(kit: Any, query: str) -> None:
    assert kit.client().get(f"/api/runs?{query}").status_code == 413


def test_long_headers_are_refused(kit: Any) -> None:
    assert kit.client().get("/api/runs", headers={"X-Long": "x" * 40_000}).status_code == 413


def test_files_are_served_as_downloads(kit: Any, outcome: str) -> None:
    client = kit.client("runs")
    listed = kit.get(f"/outcomes/{outcome}/artifacts", client)
    assert listed == {"available": True, "items": [{"path": "out/report.txt", "size": 25, "mediaType": "text/plain"}]}
    answer = client.get(f"/api/outcomes/{outcome}/artifacts/out/report.txt")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment"
    assert kit.get(f"/outcomes/{outcome}", client)["artifactCount"] == 1


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../results.jsonl",
        "..%2f..%2f..%2f..%2f..%2fresults.jsonl",
        "%2e%2e/%2e%2e/results.jsonl",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "link.txt",
        "linked/secret.txt",
        ".hidden",
        "out",
        "out//report.txt",
        "out%5creport.txt",
        "out/report.txt%00",
        "",
    ],
)
def test_nothing_else_is_served(kit: Any, outcome: str, path: str) -> None:
    answer = kit.client("runs").get(f"/api/outcomes/{outcome}/artifacts/{path}")
    assert answer.status_code == 404
    assert "secret" not in answer.text


def test_artifacts_that_are_gone_say_so(kit: Any, outcome: str) -> None:
    answer = kit.client().get(f"/api/outcomes/{outcome}/artifacts/out/report.txt")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "artifact_unavailable")
    assert kit.get(f"/outcomes/{outcome}/artifacts") == {"available": False, "items": []}


def test_an_answer_that_is_known_is_not_sent_again(kit: Any) -> None:
    kit.run()
    kit.ingest()
    client = kit.client()
    first = client.get("/api/runs")
    etag = first.headers["etag"]
    assert etag.startswith('W/"')
    assert first.headers["cache-control"] == "no-cache"
    assert client.get("/api/runs", headers={"If-None-Match": etag}).status_code == 304
    assert client.get("/api/runs?limit=5", headers={"If-None-Match": etag}).status_code == 200
    kit.run("runs/two", [{"trajectory": {"output": ""}}])
    kit.ingest()
    assert client.get("/api/runs", headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["", "/trajectory", "/raw", "/diff", "/tools", "/artifacts", "/artifacts/out/report.txt"],
)
def test_every_answer_about_an_outcome_may_be_known(kit: Any, outcome: str, path: str) -> None:
    client, address = kit.client("runs"), f"/api/outcomes/{outcome}{path}"
    etag = client.get(address).headers["etag"]
    again = client.get(address, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)


def test_a_list_of_artifacts_is_another_when_a_file_is(kit: Any, outcome: str) -> None:
    client, address = kit.client("runs"), f"/api/outcomes/{outcome}/artifacts"
    etag = client.get(address).headers["etag"]
    kit.write("runs/one/e/s/m/0/artifacts/out/more.txt", text="more")
    assert client.get(address, headers={"If-None-Match": etag}).status_code == 200


def test_head_is_get_without_a_body(kit: Any) -> None:
    kit.run()
    kit.ingest()
    client = kit.client()
    got, head = client.get("/api/runs"), client.head("/api/runs")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]


def test_large_answers_are_compressed(kit: Any) -> None:
    kit.run()
    kit.ingest()
    client = kit.client()
    with client.stream("GET", "/api/outcomes", headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).startswith(b'{"items"')
    assert "content-encoding" not in client.get("/api/health", headers={"Accept-Encoding": "gzip"}).headers


def test_an_internal_error_tells_nothing_but_an_id(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from vally_command_results.query import runs

    def fail(*_: Any) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(runs, "facets", fail)
    answer = kit.client().get("/api/facets")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "hunter2" not in answer.text


def test_a_growing_run_appears_without_a_restart(kit: Any, trials: Any) -> None:
    kit.run(records=trials[:1])
    client = kit.client("runs")
    assert kit.get("/outcomes", client)["page"]["total"] == 1
    kit.run(records=trials[:3])
    # Within two seconds nothing is looked at again.
    kit.clock[0] = 1.9
    assert kit.get("/outcomes", client)["page"]["total"] == 1
    kit.clock[0] = 2.1
    assert kit.get("/outcomes", client)["page"]["total"] == 3


def test_whoever_asks_only_how_the_server_is_hears_of_new_runs(kit: Any, trials: Any) -> None:
    kit.run(records=trials[:1])
    client = kit.client("runs")
    assert kit.get("/health", client)["runCount"] == 1
    kit.run("runs/two", [{"trajectory": {"output": ""}}])
    kit.clock[0] = 2.1
    assert kit.get("/health", client)["runCount"] == 2


def test_a_busy_port_is_named(kit: Any) -> None:
    kit.run()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_cli(["serve", "runs", "--port", str(port)], cwd=kit.root)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, f"error: 127.0.0.1:{port} is already in use")


def test_the_store_is_never_changed_by_reading(kit: Any, outcome: str, tmp_path: Path) -> None:
    before = kit.get("/health")["dataVersion"]
    for path in ("/runs", "/outcomes", f"/outcomes/{outcome}", "/trends", "/graders"):
        kit.get(path)
    assert kit.get("/health")["dataVersion"] == before
