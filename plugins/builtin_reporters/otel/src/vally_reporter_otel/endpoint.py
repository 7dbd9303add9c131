"""Requests by HTTP, from a thread of its own, so that no trial waits for a slow endpoint."""

from __future__ import annotations

import queue
import threading
import time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

PATH = "/v1/traces"
TRIES = 3
TIMEOUT_S = 10.0
PAUSE_S = 0.5
CLOSE_S = 40.0
"""How long the end of a run waits for what is not sent yet; the kernel gives a reporter a minute."""

MAX_WAITING = 1_000
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})


class EndpointDelivery:
    """Sends each request up to three times; after one that failed for good the next ones get one try each."""

    def __init__(self, url: str, headers: str = "", *, timeout_s: float = TIMEOUT_S, pause_s: float = PAUSE_S) -> None:
        self._url = traces_url(url)
        self._headers, self._problem = parse_headers(headers)
        self._timeout_s = timeout_s
        self._pause_s = pause_s
        self._waiting: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._failed = self._sent = 0
        self._reason = ""
        self._opener = build_opener(_NoRedirect)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="vally-otlp", daemon=True)
        self._thread.start()

    def send(self, body: bytes) -> None:
        """Queue a request; when too many wait already it is lost and counted."""
        try:
            self._waiting.put_nowait(body)
        except queue.Full:
            self._failed += 1
            self._reason = self._reason or "the endpoint is too slow"

    def close(self, within_s: float = CLOSE_S) -> str | None:
        """Wait for what is queued; returns what went wrong in one line."""
        self._closing.set()
        # A full queue means that there is work, so the end is found by the flag.
        self._thread.join(within_s)
        lost = self._failed
        if self._thread.is_alive():
            lost += self._waiting.qsize() + 1
            self._reason = self._reason or f"not sent within {within_s:g}s"
        if lost:
            return f"spans of {lost} of {self._sent + lost} trials were not sent to {self._shown()}: {self._reason}"
        return self._problem

    def _shown(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def _work(self) -> None:
        while True:
            try:
                body = self._waiting.get(timeout=0.05)
            except queue.Empty:
                if self._closing.is_set():
                    return
                continue
            self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        tries = 1 if self._failed else TRIES
        for number in range(1, tries + 1):
            problem, again = self._post(body)
            if problem is None:
                self._sent += 1
                return
            self._reason = self._reason or problem
            if not again or number == tries:
                break
            time.sleep(self._pause_s * number)
        self._failed += 1

    def _post(self, body: bytes) -> tuple[str | None, bool]:
        """What went wrong, and whether it may go well another time."""
        request = Request(self._url, data=body, headers={**self._headers, "Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                response.read(1 << 16)
            return None, False
        except HTTPError as error:
            with error:
                return f"HTTP status {error.code}", error.code in _RETRYABLE
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            return str(getattr(reason, "strerror", None) or reason or type(error).__name__), True


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        # Headers with credentials must not follow to another host.
        return None


def traces_url(url: str) -> str:
    """The URL of traces below an endpoint; the URL as it is when it has that path already."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return url if path.endswith(PATH) else urlunsplit(parts._replace(path=f"{path}{PATH}"))


def parse_headers(text: str) -> tuple[dict[str, str], str | None]:
    """Headers of `name=value,name=value` with percent-encoded values, and what is wrong; no value is repeated."""
    headers: dict[str, str] = {}
    problem = None
    for part in text.split(","):
        name, separator, value = part.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not part.strip():
            continue
        sound = separator and name.replace("-", "").replace("_", "").isalnum() and value.isprintable()
        if not sound or not (name + value).isascii():
            problem = "OTEL_EXPORTER_OTLP_HEADERS: a part that is not name=value is ignored"
        else:
            headers[name] = value
    return headers, problem
