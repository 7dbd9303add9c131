"""The way from a loopback port to a relay, by each program that can be had."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import pytest
from model_relay import Asked, Client, endpoint, open_relay, received, reply, request

from vally_backend_local import FORWARDERS, Forward, ForwarderKind, forwarder_command

pytestmark = pytest.mark.anyio
PROGRAMS = {"python": sys.executable, "node": shutil.which("node"), "socat": shutil.which("socat")}
LARGE = 8 * 2**20


@pytest.fixture(params=FORWARDERS)
def kind(request: pytest.FixtureRequest) -> ForwarderKind:
    if PROGRAMS[request.param] is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param  # type: ignore[no-any-return]


def free_ports(number: int) -> list[int]:
    with contextmanager(_bound)(number) as sockets:
        return [made.getsockname()[1] for made in sockets]


def _bound(number: int) -> Iterator[list[socket.socket]]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    yield sockets
    for made in sockets:
        made.close()


@asynccontextmanager
async def forwarding(kind: ForwarderKind, *sockets: Path) -> AsyncIterator[list[int]]:
    """The ports that lead to sockets, as long as the context lasts."""
    ports = free_ports(len(sockets))
    forwards = [Forward(port, path) for port, path in zip(ports, sockets, strict=True)]
    command = forwarder_command(kind, str(PROGRAMS[kind]), forwards)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/", start_new_session=True)
    try:
        assert process.stdout is not None
        if kind != "socat":
            assert await anyio.to_thread.run_sync(process.stdout.readline) == b"ready\n"
        for port in ports:
            await listening(port)
        with anyio.fail_after(30):
            yield ports
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


async def listening(port: int) -> None:
    while True:
        try:
            async with await anyio.connect_tcp("127.0.0.1", port):
                return
        except OSError:
            await anyio.sleep(0.01)


async def ask(client: Client, port: int, text: bytes = request("GET", "/x")) -> bytes:
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(text.replace(b"TOKEN", client.token.encode()))
        return (await reply(stream)).body


async def test_requests_arrive(kind: ForwarderKind, tmp_path: Path) -> None:
    async with (
        endpoint() as there,
        open_relay(tmp_path, there.url) as client,
        forwarding(kind, client.forward.socket) as (port,),
    ):
        for _ in range(3):
            assert await ask(client, port) == b"fine"
    assert len(there.asked) == 3


async def test_several_ports_and_clients(kind: ForwarderKind, tmp_path: Path) -> None:
    async with endpoint() as one, endpoint() as other, open_relay(tmp_path, one.url) as client:
        second = await client.relays.reach(replace(client.told, base_url=other.url), tmp_path, print)
        another = replace(client, told=second)
        async with forwarding(kind, *(forward.socket for forward in client.relays.forwards)) as (first, last):
            found = []

            async def call(client: Client, port: int) -> None:
                found.append(await ask(client, port))

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call, client, first)
                    tasks.start_soon(call, another, last)
            assert found == [b"fine"] * 40
    assert (len(one.asked), len(other.asked)) == (20, 20)


async def test_events_arrive_one_by_one(kind: ForwarderKind, tmp_path: Path) -> None:
    arrived = anyio.Event()

    async def answer(asked: Asked) -> None:
        await asked.stream.send(b"HTTP/1.1 200 OK\r\n\r\ndata: first\n\n")
        await arrived.wait()
        await asked.stream.send(b"data: last\n\n")

    async with (
        endpoint(answer) as there,
        open_relay(tmp_path, there.url) as client,
        forwarding(kind, client.forward.socket) as (port,),
        await anyio.connect_tcp("127.0.0.1", port) as stream,
    ):
        await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
        told = b""
        while b"data: first\n\n" not in told:
            told += await stream.receive()
        arrived.set()
        while b"data: last\n\n" not in told:
            told += await stream.receive()


async def test_large_bodies(kind: ForwarderKind, tmp_path: Path) -> None:
    async def answer(asked: Asked) -> None:
        body = await asked.body(LARGE)
        await asked.stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body[::-1])

    sent = bytes(range(256)) * (LARGE // 256)
    async with (
        endpoint(answer) as there,
        open_relay(tmp_path, there.url) as client,
        forwarding(kind, client.forward.socket) as (port,),
    ):
        assert await ask(client, port, request("POST", "/x", f"Content-Length: {LARGE}") + sent) == sent[::-1]


@pytest.mark.parametrize("politely", [False, True])
async def test_a_client_that_goes_away(politely: bool, kind: ForwarderKind, tmp_path: Path) -> None:
    ended = anyio.Event()

    async def answer(asked: Asked) -> None:
        await asked.stream.send(b"HTTP/1.1 200 OK\r\n\r\ndata: first\n\n")
        await received(asked.stream)
        ended.set()

    async with (
        endpoint(answer) as there,
        open_relay(tmp_path, there.url) as client,
        forwarding(kind, client.forward.socket) as (port,),
    ):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(request("GET", "/x").replace(b"TOKEN", client.token.encode()))
            await stream.receive()
            if politely:
                await stream.send_eof()
                await ended.wait()
        await ended.wait()


async def test_a_relay_that_is_gone(kind: ForwarderKind, tmp_path: Path) -> None:
    async with endpoint() as there, open_relay(tmp_path, there.url) as client:
        path = client.forward.socket
    async with forwarding(kind, path) as (port,):
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                assert await received(stream) == b""


async def test_nobody_else_s_interface_is_listened_on(kind: ForwarderKind, tmp_path: Path) -> None:
    async with (
        endpoint() as there,
        open_relay(tmp_path, there.url) as client,
        forwarding(kind, client.forward.socket) as (port,),
    ):
        with pytest.raises(OSError, match=r"."):
            await anyio.connect_tcp("127.0.0.2", port)


def test_the_command_names_what_it_runs() -> None:
    forward = Forward(61080, Path("/a directory/of 'mine'/model-61080"))
    for kind in FORWARDERS:
        command = forwarder_command(kind, f"/opt/{kind}", [forward])
        assert any(f"/opt/{kind}" in word for word in command)
    assert "cd '/a directory/of '\"'\"'mine'\"'\"''" in forwarder_command("socat", "socat", [forward])[2]
