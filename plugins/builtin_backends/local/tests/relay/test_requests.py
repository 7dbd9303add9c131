"""What a relay passes on, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_relay import HEADER_SECRET, KEY, OK, SMALL, Asked, endpoint, open_relay, received, reply, request

pytestmark = pytest.mark.anyio


async def test_a_request_arrives_with_the_real_key(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, f"{there.url}/v1") as client:
        answer = await client.post("/v1/chat?x=1&y=%2F", "X-Agent: yes", body=b'{"a": 1}')
        assert (answer.status, answer.body, answer.whole) == (200, b"fine", True)
    (asked,) = there.asked
    assert asked.line == "POST /v1/chat?x=1&y=%2F HTTP/1.1"
    assert asked.headers["host"] == there.url.removeprefix("http://")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-agent"] == "yes"
    assert await asked.body(8) == b'{"a": 1}'
    assert client.warnings == []


async def test_the_agent_is_told_neither_host_nor_secrets(tmp_path: Path) -> None:
    facts = {"headers": {"X-Team": HEADER_SECRET}, "api_version": "7", "model": "m", "wire_api": "responses"}
    async with endpoint() as there, open_relay(tmp_path, f"{there.url}/a/v1?b=c", type="azure", **facts) as client:
        told = client.told
        assert told.base_url == f"http://127.0.0.1:{client.forward.port}/a/v1?b=c"
        assert (told.type, told.api_version, told.model, told.wire_api) == ("azure", "7", "m", "responses")
        for secret in (KEY, HEADER_SECRET, str(there.port)):
            assert secret not in repr(told) + str(told.headers) + client.token
        await client.get("/a/v1/models", "X-Team: of the agent")
    assert there.asked[0].headers["x-team"] == HEADER_SECRET
    assert there.asked[0].head.count("eam:") == 1


KEYS = {
    "bearer": ("Authorization: Bearer TOKEN", "authorization", f"Bearer {KEY}"),
    "scheme-in-lower-case": ("authorization:  bearer TOKEN", "authorization", f"bearer {KEY}"),
    "bare": ("Authorization: TOKEN", "authorization", KEY),
    "anthropic": ("x-api-key: TOKEN", "x-api-key", KEY),
    "azure": ("api-key: TOKEN", "api-key", KEY),
    "gemini": ("x-goog-api-key: TOKEN", "x-goog-api-key", KEY),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("secret", ["api_key", "bearer_token"])
async def test_the_key_stands_where_the_token_stood(name: str, secret: str, tmp_path: Path) -> None:
    key, header, value = KEYS[name]
    facts = {"api_key": None, secret: KEY}
    async with endpoint() as there, open_relay(tmp_path, there.url, **facts) as client:
        assert (await client.send(request("GET", "/v1/models", key=key))).status == 200
        assert (client.told.api_key is None) is (secret == "bearer_token")
    assert there.asked[0].headers[header] == value


async def test_the_key_of_a_query(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, api_key="a key&x=1") as client:
        assert (await client.get(f"/v1/m:go?alt=sse&key={client.token}&b", "X: y")).status == 200
        assert (await client.send(request("GET", f"/m?key={client.token}", key=""))).status == 200
    assert there.asked[0].line.split()[1] == "/v1/m:go?alt=sse&b&key=a%20key%26x%3D1"
    assert there.asked[1].line.split()[1] == "/m?key=a%20key%26x%3D1"


async def test_a_provider_without_key_gets_none(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, api_key=None) as client:
        assert (await client.get(f"/x?key={client.token}")).status == 200
    assert "authorization" not in there.asked[0].headers
    assert there.asked[0].line == "GET /x HTTP/1.1"


async def test_other_credentials_stay_inside(tmp_path: Path) -> None:
    lines = ("x-api-key: of the agent", "Cookie: a=b", "Proxy-Authorization: Basic x")
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        assert (await client.get("/x", *lines)).status == 200
    assert not {"x-api-key", "cookie", "proxy-authorization"} & set(there.asked[0].headers)


@pytest.mark.parametrize(
    "key",
    ["", "Authorization: Bearer ", "Authorization: Bearer TOKENx", "Authorization: Basic TOKEN", "X-Key: TOKEN"],
)
async def test_without_the_token_nobody_is_asked(key: str, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        answer = await client.send(request("POST", "/x?key=no", "Content-Length: 3", key=key) + b"abc")
        assert answer.status == 401
        assert json.loads(answer.body)["error"]["type"] == "authentication_error"
        assert answer.whole
    assert there.asked == []


async def test_the_token_of_another_trial_is_none(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with endpoint() as there, open_relay(tmp_path, there.url) as mine:
        async with open_relay(tmp_path / "other", there.url) as other:
            assert mine.token != other.token
            answer = await mine.send(request("GET", "/x", key=f"Authorization: Bearer {other.token}"))
        assert answer.status == 401
    assert there.asked == []


BELOW = [
    "/v1/chat/completions",
    "/v1",
    "/v1?a=b",
    "/v1/",
    "/v1//x",
    "/v1/models/a%2Fb:stream",
    "/v1/a..b",
    "/v1/...",
    "/v1/x?next=/../secret",
]
NOT_BELOW = [
    "/",
    "/other",
    "/v10/x",
    "/v1/../admin",
    "/v1/..",
    "/v1/./x",
    "/v1/%2e%2e/admin",
    "/v1/.%2E/admin",
    "/v1/%252e%252e/admin",
    "/v1/%25252e./admin",
    "/v1/..%2fadmin",
    "/v1/x%2f..%2fadmin",
    "/v1/..\\admin",
    "/v1/%5c..%5cadmin",
    "/%76%31/x",
    "//v1/x",
    "http://127.0.0.1:9/v1/x",
    "HTTP://other.example/v1/x",
    "other.example:443",
    "*",
    "v1/x",
]


@pytest.mark.parametrize("target", BELOW)
async def test_targets_below_the_address_go_out_as_they_are(target: str, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, f"{there.url}/v1") as client:
        assert (await client.get(target)).status == 200
    assert there.asked[0].line == f"GET {target} HTTP/1.1"


@pytest.mark.parametrize("target", NOT_BELOW)
async def test_other_targets_are_refused(target: str, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, f"{there.url}/v1") as client:
        answer = await client.get(target)
        assert answer.status in (400, 404)
    assert there.asked == []


async def test_a_target_that_looks_like_another_host_stays_with_the_provider(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        for target in ("//other.example/x", "/@other.example/x", "/x?u=http://other.example#y"):
            assert (await client.get(target)).status == 200
    assert [asked.line.split()[1] for asked in there.asked][:2] == ["//other.example/x", "/@other.example/x"]
    assert {asked.headers["host"] for asked in there.asked} == {f"127.0.0.1:{there.port}"}


async def test_the_client_s_host_says_nothing(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        text = request("GET", "/x", "X-Forwarded-Host: other.example").replace(b"127.0.0.1", b"other.example")
        assert (await client.send(text)).status == 200
    assert there.asked[0].headers["host"] == f"127.0.0.1:{there.port}"


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PROPFIND", "get"])
async def test_methods_that_are_not_passed_on(method: str, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        assert (await client.send(request(method, "/x"))).status == 405
    assert there.asked == []


async def test_a_websocket_is_refused_so_that_agents_fall_back(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, f"{there.url}/v1") as client:
        lines = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==")
        answer = await client.get("/v1/responses", *lines)
        assert answer.status == 426
        assert "websocket" in json.loads(answer.body)["error"]["message"]
        assert (await client.post("/v1/responses")).status == 200
        # Any other upgrade is an offer, which may be passed over.
        assert (await client.get("/v1/models", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")).status == 200
    assert "upgrade" not in there.asked[-1].headers


SMUGGLED = {
    "two-lengths": [b"Content-Length: 3\r\nContent-Length: 40"],
    "length-and-chunks": [b"Content-Length: 3\r\nTransfer-Encoding: chunked"],
    "odd-coding": [b"Transfer-Encoding: gzip, chunked"],
    "hidden-coding": [b"Transfer-Encoding: \x0bchunked"],
    "space-before-colon": [b"Content-Length : 3"],
    "signed-length": [b"Content-Length: +3"],
    "folded": [b"X-A: b\r\n\tc: d\r\nContent-Length: 3x"],
    "no-colon": [b"Content-Length"],
    "control": [b"X-A: b\x00c"],
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_ambiguous_requests_are_refused(name: str, tmp_path: Path) -> None:
    inner = b"GET /admin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n"
    (lines,) = SMUGGLED[name]
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        answer = await client.send(request("POST", "/x")[:-2] + lines + b"\r\n\r\nabc" + inner)
        assert answer.status in (400, 501)
        assert answer.headers["connection"] == "close"
    assert there.asked == []


async def test_a_length_that_is_said_to_be_the_connection_s_does_not_cut_the_body(tmp_path: Path) -> None:
    async with endpoint(whole_chunks) as there, open_relay(tmp_path, there.url) as client:
        answer = await client.post("/x", "Connection: content-length, keep-alive, X-Hop", "X-Hop: 1", body=b"abcdef")
        assert answer.status == 200
    assert there.asked[0].headers["transfer-encoding"] == "chunked"
    assert not {"content-length", "x-hop", "keep-alive"} & set(there.asked[0].headers)
    assert b"abcdef" in there.asked[0].rest


async def whole_chunks(asked: Asked) -> None:
    while not asked.rest.endswith(b"0\r\n\r\n"):
        asked.rest += await asked.stream.receive()
    await asked.stream.send(OK)


async def test_a_head_that_is_too_large(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, limits=SMALL) as client:
        answer = await client.get("/x", *(f"X-{number}: {'y' * 1000}" for number in range(200)))
        assert answer.status == 431
        answer = await client.get("/" + "x" * 200_000)
        assert answer.status == 431
        assert (await client.get("/x", f"X-A: {'y' * 4000}")).status == 200
    assert len(there.asked) == 1


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET", b"\r\n\r\n", b"GET /x HTTP/x"])
async def test_what_is_no_request(sent: bytes, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, limits=SMALL) as client:
        assert (await client.send(sent + b"\r\n\r\n")).status == 400
        assert (await client.get("/x")).status == 200
    assert len(there.asked) == 1


@pytest.mark.parametrize(
    "sent", [b"GET /x HT", request("POST", "/x", "Content-Length: 9") + b"abc"], ids=["head", "body"]
)
async def test_a_client_that_is_too_slow(sent: bytes, tmp_path: Path) -> None:
    async def waiting(asked: Asked) -> None:
        await received(asked.stream)

    async with endpoint(waiting) as there, open_relay(tmp_path, there.url, limits=SMALL) as client:
        answer = await client.send(sent)
        assert answer.status == 408
        assert answer.whole
    assert len(there.asked) <= 1


async def test_a_client_that_says_nothing_is_not_kept(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, limits=SMALL) as client, client.connection() as one:
        assert await received(one) == b""


async def test_idle_clients_take_nobody_s_place_for_ever(tmp_path: Path) -> None:
    async with (
        endpoint() as there,
        open_relay(tmp_path, there.url, limits=SMALL) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(SMALL.connections):
            tasks.start_soon(silent, client)
        for _ in range(3 * SMALL.connections):
            tasks.start_soon(client.get, "/x")
    assert len(there.asked) == 3 * SMALL.connections


async def silent(client: Any) -> None:
    async with client.connection() as stream:
        assert await received(stream) == b""


async def test_several_requests_on_one_connection(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        text = request("POST", "/x", "Content-Length: 2").replace(b"TOKEN", client.token.encode()) + b"{}"
        # Both at once: the second waits for the answer of the first.
        await stream.send(text + text)
        for _ in range(2):
            assert (await reply(stream)).body == b"fine"
        await stream.send(text)
        assert (await reply(stream)).body == b"fine"
    assert len(there.asked) == 3


async def test_a_client_that_waits_before_it_sends_a_body(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        head = request("POST", "/x", "Content-Length: 2", "Expect: 100-continue")
        await stream.send(head.replace(b"TOKEN", client.token.encode()))
        assert (await received(stream)).startswith(b"HTTP/1.1 100 ")
        await stream.send(b"{}")
        assert (await reply(stream)).body == b"fine"
    assert "expect" not in there.asked[0].headers


async def test_an_old_client(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        assert (await client.send(request("GET", "/x").replace(b"HTTP/1.1", b"HTTP/1.0"))).body == b"fine"
    assert len(there.asked) == 1


async def test_two_providers_of_a_trial(tmp_path: Path) -> None:
    async with endpoint() as first, endpoint() as second, open_relay(tmp_path, first.url) as client:
        from vally import ProviderConfig

        one = ProviderConfig(type="openai", base_url=first.url, api_key=KEY)
        other = ProviderConfig(type="openai", base_url=second.url, api_key=KEY)
        assert await client.relays.reach(one, tmp_path, print) == client.told
        told = await client.relays.reach(other, tmp_path, print)
        ports = [forward.port for forward in client.relays.forwards]
        assert len(set(ports)) == 2
        assert told.base_url == f"http://127.0.0.1:{ports[1]}"
        assert (await client.send(request("GET", "/x", key=f"x-api-key: {told.api_key}"))).status == 401
    assert first.asked == second.asked == []


async def test_a_refusal_can_be_read_by_a_client_that_is_still_sending(tmp_path: Path) -> None:
    body = b"x" * (8 * 2**20)
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        answer = await client.send(request("POST", "/x", f"Content-Length: {len(body)}", key="") + body)
        assert answer.status == 401
    assert there.asked == []


async def test_a_proxy_stands_before_other_machines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as proxy, endpoint() as there:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        for name, url in (("near", there.url), ("far", "http://model.example/v1")):
            (tmp_path / name).mkdir()
            async with open_relay(tmp_path / name, url) as client:
                assert (await client.get("/v1/x?y=%2Fz")).status == 200
    assert [asked.line for asked in there.asked] == ["GET /v1/x?y=%2Fz HTTP/1.1"]
    assert [asked.line for asked in proxy.asked] == ["GET http://model.example/v1/x?y=%2Fz HTTP/1.1"]
