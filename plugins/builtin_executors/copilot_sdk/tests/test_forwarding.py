"""Passing model calls on from this process."""

from __future__ import annotations

import gzip
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from endpoints import nobody

from vally_executor_copilot_sdk.forwarding import Gateway
from vally_executor_copilot_sdk.hermetic import PLACEHOLDER_KEY, placeholder_access
from vally_executor_copilot_sdk.provider import ModelAccess

pytestmark = pytest.mark.anyio
KEY = "canary-of-the-key"
URL = "https://model.invalid/v1/chat/completions"


class Endpoint(ThreadingHTTPServer):
    """Answers by the last part of the path, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.go_on = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Answers(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.path, headers, body))
        getattr(self, self.path.rpartition("/")[2], self.completions)()

    def completions(self) -> None:
        self._answer(200, b'{"a": 1}', **{"Content-Type": "application/json", "Set-Cookie": "a=b"})

    def packed(self) -> None:
        self._answer(200, gzip.compress(b"unpacked"), **{"Content-Encoding": "gzip"})

    def refused(self) -> None:
        told = f"wrong key {KEY} at {self.headers['host']}".encode()
        self._answer(401, told, **{"Retry-After": "7"})

    def elsewhere(self) -> None:
        self._answer(302, b"", Location=f"{self.server.url}/chat/completions")

    def slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"first ")
        self.wfile.flush()
        if self.server.go_on.wait(20):
            self.wfile.write(b"second")

    def cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Be silent."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


@pytest.fixture
async def gateway(endpoint: Endpoint) -> AsyncIterator[Gateway]:
    made = Gateway({"base_url": endpoint.url, "api_key": KEY, "headers": {"X-Team": "team"}}, lambda text: text)
    yield made
    await made.close()


def request(url: str = URL, **headers: str) -> httpx.Request:
    return httpx.Request("POST", url, headers=headers, content=b'{"q": 1}')


@pytest.mark.parametrize("header", ["authorization", "api-key", "x-api-key"])
async def test_key_headers_and_address(gateway: Gateway, endpoint: Endpoint, header: str) -> None:
    answer = await gateway.send(request(**{header: f"Bearer {PLACEHOLDER_KEY}", "x-team": "other", "accept": "a/b"}))
    ((path, headers, body),) = endpoint.asked
    assert (path, body) == ("/v1/chat/completions", b'{"q": 1}')
    assert headers[header] == f"Bearer {KEY}"
    assert (headers["x-team"], headers["accept"]) == ("team", "a/b")
    assert headers["host"] in endpoint.url
    assert await answer.aread() == b'{"a": 1}'
    assert dict(answer.headers) == {"content-type": "application/json"}


async def test_the_query_stays(gateway: Gateway, endpoint: Endpoint) -> None:
    await gateway.send(request(f"{URL}?api-version=1"))
    assert endpoint.asked[0][0] == "/v1/chat/completions?api-version=1"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com/v1/models",
        "http://model.invalid/v1/chat/completions",
        "https://model.invalid:8443/v1/chat/completions",
        "https://model.invalid/admin",
        "https://model.invalid/v1x/chat",
        "https://model.invalid/v1/../admin",
        "https://model.invalid/v1/%2e%2e/admin",
        "https://model.invalid.example/v1/chat/completions",
        "https://127.0.0.1/v1/chat/completions",
    ],
)
async def test_nothing_else_can_be_asked(gateway: Gateway, endpoint: Endpoint, url: str) -> None:
    answer = await gateway.send(request(url, authorization=PLACEHOLDER_KEY))
    assert answer.status_code == 404
    assert endpoint.asked == []


async def test_an_answer_comes_bit_by_bit(gateway: Gateway, endpoint: Endpoint) -> None:
    answer = await gateway.send(request(f"{URL}/slow"))
    parts = answer.aiter_raw()
    assert await anext(parts) == b"first "
    endpoint.go_on.set()
    assert [part async for part in parts] == [b"second"]


async def test_a_packed_answer_is_unpacked(gateway: Gateway) -> None:
    answer = await gateway.send(request(f"{URL}/packed"))
    assert b"".join([part async for part in answer.aiter_raw()]) == b"unpacked"
    assert "content-encoding" not in answer.headers


async def test_an_error_tells_neither_key_nor_host(gateway: Gateway) -> None:
    answer = await gateway.send(request(f"{URL}/refused"))
    assert (answer.status_code, answer.headers["retry-after"]) == (401, "7")
    assert "wrong key" in answer.text
    assert KEY not in answer.text
    assert "127.0.0.1" not in answer.text


async def test_no_key_goes_where_an_answer_leads(gateway: Gateway, endpoint: Endpoint) -> None:
    answer = await gateway.send(request(f"{URL}/elsewhere"))
    assert answer.status_code == 302
    assert "location" not in answer.headers
    assert len(endpoint.asked) == 1


async def test_an_answer_that_is_cut(gateway: Gateway) -> None:
    answer = await gateway.send(request(f"{URL}/cut"))
    with pytest.raises(httpx.RemoteProtocolError):
        await answer.aread()


async def test_no_endpoint() -> None:
    with nobody() as url:
        gateway = Gateway({"base_url": url}, lambda text: text)
        with pytest.raises(ConnectionError, match="the model endpoint does not answer") as caught:
            await gateway.send(request())
    assert "127.0.0.1" not in str(caught.value)
    await gateway.close()


async def test_no_proxy_for_this_machine(gateway: Gateway, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await gateway.send(request())).status_code == 200
    assert len(endpoint.asked) == 1


async def test_a_proxy_leads_elsewhere(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", endpoint.url.removesuffix("/v1"))
    monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    gateway = Gateway({"base_url": "http://far.invalid/v1"}, lambda text: text)
    assert (await gateway.send(request())).status_code == 200
    assert endpoint.asked[0][0] == "http://far.invalid/v1/chat/completions"
    await gateway.close()


@pytest.mark.parametrize("name", ["api_key", "bearer_token"])
def test_what_a_session_is_told(name: str) -> None:
    secret = {name: KEY, "base_url": "https://key.example.com:8/a/v1", "headers": {"X": KEY}, "type": "openai"}
    told = placeholder_access(ModelAccess(model="m", provider=secret)).provider
    assert told == {"type": "openai", name: PLACEHOLDER_KEY, "base_url": "https://model.invalid/a/v1"}


def test_no_key_is_made_up() -> None:
    told = placeholder_access(ModelAccess(model="m", provider={"base_url": "http://127.0.0.1:8"})).provider
    assert told == {"base_url": "https://model.invalid"}
