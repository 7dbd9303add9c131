"""One connection of a client to a relay: requests in, answers out, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import h11
import httpx2

from vally_backend_local.relay.answers import AMBIGUOUS, SLOW, Refusal
from vally_backend_local.relay.limits import Limits
from vally_backend_local.relay.streams import Stream
from vally_backend_local.relay.upstream import Answer, Upstream

PIECE_BYTES = 65536


class Lost(Exception):
    """The client is gone, or what it gets cannot be completed."""


class Connection:
    """Serves the requests of one stream, one after the other."""

    def __init__(self, stream: Stream, upstream: Upstream, limits: Limits) -> None:
        self._stream = stream
        self._upstream = upstream
        self._limits = limits
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.header_bytes)
        self._body_is_read = anyio.Event()

    async def serve(self) -> None:
        """Serve until the client is gone; raises nothing that client or provider can cause."""
        try:
            while await self._next():
                self._state.start_next_cycle()
            await self._linger()
        except (Lost, OSError):
            return
        finally:
            self._stream.close()

    async def _next(self) -> bool:
        """Serve one request; tells whether there may be another."""
        try:
            request = await self._head()
            if request is None:
                return False
            await self._serve(request)
        except h11.RemoteProtocolError as error:
            await self._refuse(Refusal(error.error_status_hint, f"this is no request: {error}"))
        except TimeoutError:
            await self._refuse(SLOW)
        return self._state.our_state is h11.DONE and self._state.their_state is h11.DONE

    async def _head(self) -> h11.Request | None:
        """The next request; None when there is none any more."""
        event: object = self._state.next_event()
        if event is h11.NEED_DATA:
            with anyio.move_on_after(self._limits.idle_s) as idle:
                await self._receive()
            if idle.cancelled_caught:
                return None
            with anyio.fail_after(self._limits.head_s):
                event = await self._event()
        return event if isinstance(event, h11.Request) else None

    async def _serve(self, request: h11.Request) -> None:
        told = dict(request.headers)
        ambiguous = b"transfer-encoding" in told and b"content-length" in told
        refusal = AMBIGUOUS if ambiguous else self._upstream.refusal(request)
        if refusal is not None:
            await self._refuse(refusal)
            return
        self._body_is_read = anyio.Event()
        has_body = b"transfer-encoding" in told or int(told.get(b"content-length", 0)) > 0
        if not has_body:
            await self._body_end()
        problem: Exception | None = Lost()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            problem = await self._pass_on(request, self._body() if has_body else None)
            tasks.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Cancel when the client goes away; what it sends ahead of its answer waits."""
        await self._body_is_read.wait()
        try:
            gone = not await self._receive()
        except OSError:
            gone = True
        if gone:
            scope.cancel()

    async def _pass_on(self, request: h11.Request, body: AsyncIterator[bytes] | None) -> Exception | None:
        """Pass on a request and its answer; returns what prevented it."""
        try:
            async with self._upstream.answer(request, body) as answer:
                if isinstance(answer, Refusal):
                    await self._refuse(answer)
                else:
                    await self._answer(answer)
        except (TimeoutError, h11.RemoteProtocolError) as error:
            return error
        except (Lost, OSError, httpx2.HTTPError, h11.LocalProtocolError):
            # An answer that was cut short must not look whole, so that nothing follows.
            return Lost()
        return None

    async def _answer(self, answer: Answer) -> None:
        headers = list(answer.headers)
        if self._state.their_state is not h11.DONE:
            headers.append((b"connection", b"close"))
        await self._send(h11.Response(status_code=answer.status, headers=headers, reason=answer.reason))
        async for piece in answer.pieces:
            await self._send(h11.Data(data=piece))
        await self._send(h11.EndOfMessage())

    async def _refuse(self, refusal: Refusal) -> None:
        if self._state.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            raise Lost
        body = refusal.body()
        headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        await self._send(h11.Response(status_code=refusal.status, headers=list(headers.items())))
        await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())

    async def _linger(self) -> None:
        """Read what the client is still sending: closing before that could take the answer from it."""
        with anyio.move_on_after(self._limits.linger_s):
            self._stream.send_eof()
            left = self._limits.unread_bytes
            while left > 0 and (piece := await self._stream.receive(PIECE_BYTES)):
                left -= len(piece)

    async def _body(self) -> AsyncIterator[bytes]:
        """The body of a request as it arrives; raises TimeoutError and h11.RemoteProtocolError."""
        if self._state.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        while True:
            with anyio.fail_after(self._limits.piece_s):
                event = await self._event()
            if not isinstance(event, h11.Data):
                break
            yield bytes(event.data)
        self._body_is_read.set()

    async def _body_end(self) -> None:
        await self._event()
        self._body_is_read.set()

    async def _event(self) -> object:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            await self._receive()
        return event

    async def _receive(self) -> bool:
        """Read a piece; tells whether there was one."""
        piece = await self._stream.receive(PIECE_BYTES)
        self._state.receive_data(piece)
        return bool(piece)

    async def _send(self, event: h11.Event) -> None:
        data = self._state.send(event)
        if data:
            await self._stream.send(data)
