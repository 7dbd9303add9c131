"""The executor keeps the contract of executors, with the real runtime."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import agents
import pytest

from vally.testing import Case, MockLlm, executor_contract
from vally_executor_copilot_sdk import plugin

pytestmark = pytest.mark.heavy

(RECORD,) = plugin.vally_executors()
BASH = '!tool bash {"command": "%s", "description": "d"}\n'
LEAVE = "setsid sleep 600 </dev/null >/dev/null 2>&1 &"
SCRIPTS = {
    "answer": "!say hello",
    "writes": '!tool create {"path": "made.txt", "file_text": "made\\n"}\n!say done',
    "until-stopped": BASH % "sleep 600" + "!say late",
    "background": BASH % LEAVE + "!say done",
    "secret": "!say hello",
    "http-401": "!fail 401",
    "http-429": "!fail 429 retry-after=1",
    "http-500": "!fail 500 retry-after=1",
}

ANYWHERE: dict[str, Any] = {"provider": {"type": "openai", "baseUrl": "http://127.0.0.1:1", "model": "mock-model"}}
ADDRESSES: dict[str, str] = {}


class Director(BaseHTTPRequestHandler):
    """Adds to each prompt the script that the path names, and hands the request on."""

    llm: str

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        behaviour, _, rest = self.path.lstrip("/").partition("/")
        for message in body["messages"]:
            if message["role"] == "user" and isinstance(message["content"], str):
                message["content"] += f"\n{SCRIPTS[behaviour]}"
        headers = {"content-type": "application/json", "authorization": self.headers.get("authorization", "")}
        request = urllib.request.Request(f"{self.llm}/{rest}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request) as answer:
                self._answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, error.headers, error.read())

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name in ("content-type", "retry-after"):
            if headers.get(name):
                self.send_header(name, headers[name])
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return None


@contextmanager
def director(llm: MockLlm) -> Iterator[str]:
    handler = type("DirectorOfOne", (Director,), {"llm": llm.url})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module", autouse=True)
def address() -> Iterator[None]:
    with MockLlm() as llm, director(llm) as url:
        ADDRESSES["director"] = url
        yield


def behaves(name: str, **keys: str) -> Callable[[Path], dict[str, object]]:
    def config(_: Path) -> dict[str, object]:
        base_url = f"{ADDRESSES['director']}/{name}/v1"
        provider = {"type": "openai", "baseUrl": base_url, "model": "mock-model", **keys}
        return {"provider": provider, "cliPath": str(agents.copilot_runtime())}

    return config


AGENT = {name: behaves(name) for name in SCRIPTS if name != "secret"}
AGENT["secret"] = behaves("secret", apiKeyEnv="CONTRACT_API_KEY")


@pytest.mark.parametrize("case", executor_contract(RECORD, ANYWHERE, agent=AGENT))
def test_contract(case: Case, tmp_path: Path) -> None:
    case(tmp_path)
