"""How answers come back: as they arrive, whole or recognisably cut, and without secrets."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import ssl
import tracemalloc
from pathlib import Path

import anyio
import pytest
from model_relay import HEADER_SECRET, KEY, SMALL, Answer, Asked, endpoint, open_relay, received, reply, request

from vally import ExecutorError
from vally_backend_local import model_relays

pytestmark = pytest.mark.anyio
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LARGE = 32 * 2**20
PIECE = b"x" * 2**16


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def saying(head: bytes, body: bytes = b"") -> Answer:
    """An endpoint that says this, with the length of the body, and closes."""

    async def answer(asked: Asked) -> None:
        await asked.stream.send(head + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    return answer


async def test_the_first_event_arrives_before_the_last_is_sent(tmp_path: Path) -> None:
    arrived = anyio.Event()

    async def answer(asked: Asked) -> None:
        await asked.stream.send(CHUNKED + chunk(b"data: first\n\n"))
        await arrived.wait()
        await asked.stream.send(chunk(b"data: last\n\n") + chunk(b""))

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
        told = b""
        while b"data: first\n\n" not in told:
            told += await stream.receive()
        assert b"last" not in told
        arrived.set()
        while b"data: last\n\n" not in told:
            told += await stream.receive()
        assert told.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_the_first_piece_of_a_request_arrives_before_the_last_is_sent(tmp_path: Path) -> None:
    arrived = anyio.Event()

    async def answer(asked: Asked) -> None:
        while b"first" not in asked.rest:
            asked.rest += await asked.stream.receive()
        arrived.set()
        while b"last" not in asked.rest:
            asked.rest += await asked.stream.receive()
        await saying(b"HTTP/1.1 200 OK")(asked)

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        head = request("POST", "/x", "Transfer-Encoding: chunked").replace(b"TOKEN", client.token.encode())
        await stream.send(head + chunk(b"first"))
        await arrived.wait()
        await stream.send(chunk(b"last") + chunk(b""))
        assert (await reply(stream)).status == 200
    assert there.asked[0].headers["transfer-encoding"] == "chunked"


async def test_large_bodies_pass_in_little_memory(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        left = LARGE - len(asked.rest)
        while left:
            left -= len(await asked.stream.receive())
        await asked.stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % LARGE)
        for _ in range(LARGE // len(PIECE)):
            await asked.stream.send(PIECE)

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        await stream.send(request("POST", "/x", f"Content-Length: {LARGE}").replace(b"TOKEN", client.token.encode()))
        tracemalloc.start()
        try:
            for _ in range(LARGE // len(PIECE)):
                await stream.send(PIECE)
            head, _, rest = (await received(stream)).partition(b"\r\n\r\n")
            assert b"200 OK" in head
            left = LARGE - len(rest)
            while left:
                left -= len(await stream.receive())
            assert tracemalloc.get_traced_memory()[1] < LARGE / 4
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("begun", [False, True], ids=["before-the-answer", "within-the-answer"])
async def test_a_client_that_goes_away_ends_the_request(begun: bool, tmp_path: Path) -> None:
    asked_for, ended = anyio.Event(), anyio.Event()

    async def answer(asked: Asked) -> None:
        if begun:
            await asked.stream.send(CHUNKED + chunk(b"data: first\n\n"))
        asked_for.set()
        assert await received(asked.stream) == b""
        ended.set()

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        async with client.connection() as stream:
            await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
            await asked_for.wait()
            if begun:
                await stream.receive()
        with anyio.fail_after(20):
            await ended.wait()


async def test_a_client_that_goes_away_within_its_request(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def answer(asked: Asked) -> None:
        while await received(asked.stream):
            pass
        ended.set()

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        async with client.connection() as stream:
            head = request("POST", "/x", "Content-Length: 10").replace(b"TOKEN", client.token.encode())
            await stream.send(head + b"abc")
            while not there.asked:
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(20):
            await ended.wait()
        assert there.asked[0].headers["content-length"] == "10"


CUT = {
    "length": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ndata: first",
    "chunks": CHUNKED + chunk(b"data: first"),
    "within-a-chunk": CHUNKED + b"40\r\ndata: first",
}


@pytest.mark.parametrize("name", CUT)
async def test_an_answer_that_is_cut_does_not_look_whole(name: str, tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        await asked.stream.send(CUT[name])

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        told = await client.get("/x")
        assert told.status == 200
        assert told.body in (b"data: first", b"")
        assert not told.whole
        # The relay goes on.
        assert (await client.get("/x")).status == 200


async def test_an_endpoint_that_is_not_there(tmp_path: Path) -> None:
    async with endpoint() as there:
        url = there.url
    async with open_relay(tmp_path, url) as client:
        for _ in range(2):
            answer = await client.post("/x", body=b"x" * 100_000)
            assert answer.status == 502
            told = json.loads(answer.body)
            assert told["type"] == "error"
            assert told["error"]["message"] == "the model endpoint does not answer: Connection refused"
            assert url.removeprefix("http://") not in answer.text
        (warning,) = client.warnings
        assert warning.startswith("the model endpoint does not answer: ")
        assert url in warning


@pytest.mark.parametrize("said", [b"", b"no http at all\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nx"])
async def test_an_endpoint_that_gives_no_answer(said: bytes, tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        if said:
            await asked.stream.send(said)

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        assert (await client.get("/x")).status == 502
        assert len(client.warnings) == 1


async def test_a_name_that_does_not_exist(tmp_path: Path) -> None:
    async with open_relay(tmp_path, "https://endpoint.invalid/v1") as client:
        answer = await client.get("/v1/x")
        assert answer.status == 502
        assert "endpoint.invalid" in client.warnings[0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirections_are_not_followed(status: int, tmp_path: Path) -> None:
    async with endpoint() as elsewhere:
        target = f"{elsewhere.url}/v1"
        head = b"HTTP/1.1 %d Moved\r\nlocation: %s" % (status, target.encode())
        async with endpoint(saying(head)) as there, open_relay(tmp_path, there.url) as client:
            answer = await client.post("/x")
            assert answer.status == 400
            assert "location" not in answer.headers
            assert target in json.loads(answer.body)["error"]["message"]
            assert target in client.warnings[0]
        assert elsewhere.asked == []


async def test_an_answer_without_change_is_no_redirection(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        await asked.stream.send(b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n")

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        assert (await client.get("/x")).status == 304
        assert client.warnings == []


async def test_packed_answers_stay_packed(tmp_path: Path) -> None:
    body = gzip.compress(b"data: {}\n\n" * 1000)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip"
    async with endpoint(saying(head, body)) as there, open_relay(tmp_path, there.url) as client:
        answer = await client.get("/x", "Accept-Encoding: gzip, br")
        assert answer.body == body
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-length"] == str(len(body))
        await client.get("/x")
    assert [asked.headers["accept-encoding"] for asked in there.asked] == ["gzip, br", "identity"]


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("status", [401, 500])
async def test_an_error_does_not_tell_the_key(status: int, coding: str, tmp_path: Path) -> None:
    text = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    body = gzip.compress(text) if coding else text
    head = b"HTTP/1.1 %d Oops" % status + (b"\r\ncontent-encoding: gzip" if coding else b"")
    async with endpoint(saying(head, body)) as there, open_relay(tmp_path, there.url) as client:
        answer = await client.get("/x", "Accept-Encoding: gzip")
        assert answer.status == status
        assert answer.whole
        assert json.loads(answer.body)["error"]["message"] == f"Incorrect API key provided: {'*' * len(KEY)}"


async def test_an_answer_does_not_tell_secrets_in_pieces(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        head = b"HTTP/1.1 200 OK\r\nx-told: %s\r\ntransfer-encoding: chunked\r\n\r\n" % KEY.encode()
        await asked.stream.send(head)
        text = f"a {KEY} b {HEADER_SECRET}{KEY} {KEY[:9]} c {KEY[:12]}"
        for letter in text.encode():
            await asked.stream.send(chunk(bytes([letter])))
        await asked.stream.send(chunk(b""))

    facts = {"headers": {"X-Team": HEADER_SECRET}}
    async with endpoint(answer) as there, open_relay(tmp_path, there.url, **facts) as client:
        told = await client.get("/x")
        key, other = "*" * len(KEY), "*" * len(HEADER_SECRET)
        assert told.text == f"a {key} b {other}{key} {KEY[:9]} c {KEY[:12]}"
        assert told.headers["x-told"] == key


async def test_headers_of_the_connection_are_not_passed_on(tmp_path: Path) -> None:
    lines = [b"connection: close, x-hop", b"x-hop: 1", b"keep-alive: 5", b"x-kept: 1", b"set-cookie: a=b"]
    head = b"\r\n".join([b"HTTP/1.1 200 Fine by me", *lines])
    async with endpoint(saying(head, b"body")) as there, open_relay(tmp_path, there.url) as client:
        answer = await client.get("/x")
        assert {"x-kept", "set-cookie"} < set(answer.headers)
        assert not {"x-hop", "keep-alive", "connection"} & set(answer.headers)


async def test_answers_without_a_body(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        if asked.line.startswith("HEAD"):
            await asked.stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n")
        else:
            await asked.stream.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        for method, status in (("HEAD", 200), ("DELETE", 204)):
            await stream.send(request(method, "/x").replace(b"TOKEN", client.token.encode()))
            told = await reply(stream, method)
            assert (told.status, told.body, told.whole) == (status, b"", True)
    assert len(there.asked) == 2


async def test_an_answer_that_ends_with_the_connection(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        await asked.stream.send(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        told = await client.get("/x")
        assert (told.body, told.whole) == (b"until the end", True)


async def test_a_notice_before_the_answer(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        await asked.stream.send(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        await saying(b"HTTP/1.1 200 OK", b"fine")(asked)

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        assert (await client.get("/x")).body == b"fine"


async def test_an_answer_that_comes_before_the_request_was_read(tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        await saying(b"HTTP/1.1 413 Too Large\r\nconnection: close", b"too large")(asked)
        await asked.stream.send_eof()
        while await received(asked.stream):
            pass

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client:
        told = await client.post("/x", body=b"x" * 8 * 2**20)
        assert (told.status, told.body) == (413, b"too large")


async def test_an_endpoint_that_closes_between_requests(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        # It announces nothing and closes after each answer.
        for _ in range(3):
            await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
            assert (await reply(stream)).body == b"fine"
    assert client.warnings == []


async def test_a_closed_relay_asks_nobody(tmp_path: Path) -> None:
    waiting = anyio.Event()

    async def answer(asked: Asked) -> None:
        await asked.stream.send(CHUNKED + chunk(b"data: first\n\n"))
        waiting.set()
        await received(asked.stream)

    async with endpoint(answer) as there, open_relay(tmp_path, there.url) as client, client.connection() as stream:
        await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
        await waiting.wait()
        client.relays.close()
        client.relays.close()
        while await received(stream):
            pass
        told = 0
        with contextlib.suppress(OSError):
            told = (await client.get("/x")).status
        assert told == 0
    assert len(there.asked) == 1


async def test_what_happens_inside_is_not_changed_by_the_context(tmp_path: Path) -> None:
    async with endpoint() as there:
        with pytest.raises(ZeroDivisionError):
            async with open_relay(tmp_path, there.url) as client, client.connection():
                _ = 1 / 0
        with anyio.move_on_after(0) as scope:
            async with model_relays():
                await anyio.sleep_forever()
        assert scope.cancelled_caught


async def test_a_directory_with_a_long_path(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    async with endpoint() as there, open_relay(directory, there.url) as client:
        assert (await client.get("/x")).status == 200
        assert client.forward.socket.is_socket()


async def test_a_directory_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(Exception, match="the model relay cannot be opened"):
        async with open_relay(tmp_path / "link", "http://127.0.0.1:9"):
            pass
    assert list((tmp_path / "real").iterdir()) == []


async def test_many_at_once(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, limits=SMALL) as client:
        found = []

        async def ask() -> None:
            found.append((await client.post("/x", body=b"y" * 1000)).body)

        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(ask)
        assert found == [b"fine"] * 60
    assert len(there.asked) == 60


async def test_a_key_that_cannot_be_sent_is_not_told(tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url, api_key="canary\nwith-two-lines") as client:
        answer = await client.get("/x")
        assert answer.status == 502
        for text in (answer.text, *client.warnings):
            assert "canary" not in text
            assert "with-two-lines" not in text


async def test_an_address_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="the model relay cannot be opened: Invalid port") as caught:
        async with open_relay(tmp_path, "http://127.0.0.1:port"):
            pass
    assert caught.value.code == "executor-config"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_an_endpoint_with_a_certificate_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -addext subjectAltName=IP:127.0.0.1"
    made = [*words.split(), "-keyout", str(key), "-out", str(certificate)]
    await anyio.run_process(made)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate, key)
    async with endpoint(tls=own) as there:
        async with open_relay(tmp_path, there.url) as client:
            assert (await client.get("/x")).status == 502
            assert "certificate" in client.warnings[0]
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        (tmp_path / "second").mkdir()
        async with open_relay(tmp_path / "second", there.url) as client:
            assert (await client.get("/x")).body == b"fine"
