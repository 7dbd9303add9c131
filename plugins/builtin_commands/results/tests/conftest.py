"""Run directories made by hand, stores to import them into, and a client of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from vally_command_results.importing.importer import ImportOptions
from vally_command_results.importing.session import ImportSummary, import_directories
from vally_command_results.server.app import make_api, make_app, openapi_document
from vally_command_results.server.guard import AllowedHosts
from vally_command_results.server.site import Mode, Site
from vally_command_results.store.opening import Store, open_memory, open_store


def grader(name: str, passed: bool, **fields: Any) -> dict[str, Any]:
    """A grader's result."""
    score = float(passed)
    base = {"name": name, "graderType": name.split()[0], "kind": "code", "passed": passed, "score": score}
    return {**base, "evidence": f"{name} {'passed' if passed else 'failed'}", **fields}


def event(kind: str, second: float, **data: Any) -> dict[str, Any]:
    """An event of a trajectory."""
    return {"type": kind, "timestamp": f"2026-07-24T01:00:{second:06.3f}Z", "turn": 0, "data": data}


EVENTS = [
    event("user_message", 14.1, content="Write app.json"),
    event("tool_call", 15.304, toolName="write", toolCallId="c1", arguments={"path": "app.json"}),
    event("tool_call", 15.4, toolName="bash", toolCallId="c2", arguments={"command": "ls"}),
    event("tool_result", 15.36, toolName="write", toolCallId="c1", success=True, result="File written"),
    event("tool_result", 15.9, toolName="bash", toolCallId="c2", success=False, result="no such file"),
    event("assistant_message", 16.0, content="Done."),
]
DIFF = (
    "diff --git a/app.json b/app.json\nnew file mode 100644\n--- /dev/null\n+++ b/app.json\n@@ -0,0 +1,2 @@\n+{\n+}\n"
)


def trial(stimulus: str, index: int, passed: bool | None = True, **fields: Any) -> dict[str, Any]:
    """One trial record; `passed` None means without a grade."""
    model = fields.get("model", "gpt-x")
    usage = {"inputTokens": 2500, "outputTokens": 347, "totalTokens": 2847, "callCount": 2}
    metrics = {"turnCount": 4, "toolCallCount": 2, "errorCount": 0, "wallTimeMs": 7900, "tokenUsage": usage}
    trajectory = {
        "id": "t",
        "output": "I created app.json.",
        "endReason": "completed",
        "workDir": "/w",
        "metrics": metrics,
        "metadata": {"model": model, "executor": "mock", "skillsLoaded": ["config-writer"]},
        "events": EVENTS,
        "stimulus": {"name": stimulus, "prompt": "Write app.json"},
        "diff": DIFF,
    }
    details = [grader("output-contains port", bool(passed)), grader("file-exists", True)]
    grade = {
        "name": "trajectory-grade",
        "kind": "code",
        "passed": passed,
        "score": sum(item["score"] for item in details) / 2,
    }
    file, variant = fields.get("evalFilePath", "evals/config/eval.yaml"), fields.get("variant", "main")
    return {
        "type": "trial-result",
        "runId": "run-1",
        "itemId": f"{file}::{variant}::{model}::{stimulus}::trial-{index}",
        "evalName": "config-eval",
        "evalFilePath": file,
        "variant": variant,
        "model": model,
        "stimulus": stimulus,
        "trialIndex": index,
        "totalTrials": 3,
        "status": "success",
        "durationMs": 8300 + 1000 * index,
        "startedAt": f"2026-07-24T01:00:{14 + index:02d}.020Z",
        "trajectory": trajectory,
        "tags": {"area": ["config"]},
        "gradeResult": None if passed is None else {**grade, "evidence": "graded", "details": details},
        **fields,
    }


def summary(**fields: Any) -> dict[str, Any]:
    """A run summary with one eval."""
    evaluation = {
        "name": "config-eval",
        "evalFilePath": "evals/config/eval.yaml",
        "variant": "main",
        "model": "gpt-x",
        "passed": False,
        "overallScore": 0.83,
        "threshold": 0.9,
        "scoringApplied": True,
        "stimuliRun": 2,
        "stimuliTotal": 2,
        "durationMs": 140100,
    }
    return {
        "type": "run-summary",
        "runId": "run-1",
        "status": "completed",
        "passed": False,
        "hadExecutionErrors": False,
        "partial": False,
        "stopReason": None,
        "startedAt": "2026-07-24T01:00:00.000Z",
        "completedAt": "2026-07-24T01:02:41.400Z",
        "durationMs": 161400,
        "totals": {},
        "evals": [evaluation],
        **fields,
    }


TRIALS = [
    trial("writes-json", 0, True), trial("writes-json", 1, False), trial("writes-json", 2, True),
    trial("keeps-comments", 0, True), trial("keeps-comments", 1, None, status="error", error="away", trajectory=None),
]  # fmt: skip


@cache
def answer_schemas() -> list[tuple[re.Pattern[str], Draft202012Validator]]:
    """What the OpenAPI document says about the answers of each path."""
    with closing(open_memory()) as store:
        document = openapi_document(make_api(Site(store, "store")))
    found = []
    for template, operations in document["paths"].items():
        pattern = re.sub(r"\\{[a-z_]+\\}", "[^/]+", re.escape(template))
        content = operations["get"]["responses"]["200"]["content"].get("application/json", {})
        schema = {**content.get("schema", {}), "components": document["components"]}
        found.append((re.compile(pattern), Draft202012Validator(schema)))
    return found


def check_answer(path: str, document: Any) -> None:
    """Every answer is what the OpenAPI document says."""
    (validator,) = [validator for pattern, validator in answer_schemas() if pattern.fullmatch(path)]
    validator.validate(document)


@dataclass
class Kit:
    """A tree of runs below `root`, and a store."""

    root: Path
    store: Store
    _clients: list[TestClient] = field(default_factory=list)
    _default: TestClient | None = None
    clock: list[float] = field(default_factory=lambda: [0.0])
    """The seconds that servers see."""

    def write(self, path: str, records: Sequence[Any] = (), text: str | None = None) -> Path:
        """A file of JSON lines, or of any text."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(item) + "\n" for item in records) if text is None else text)
        return target

    def run(self, name: str = "runs/one", records: Sequence[Any] = (*TRIALS, summary())) -> Path:
        """A run directory."""
        return self.write(f"{name}/results.jsonl", records)

    def ingest(self, path: str = "runs", **options: Any) -> ImportSummary:
        """Import a directory."""
        return import_directories(self.store, [(self.root / path, path)], ImportOptions(**options))

    def client(self, path: str | None = None, *, cors: bool = False, hosts: Sequence[str] = ()) -> TestClient:
        """A client of a server over the store, or over a directory that is imported into it."""
        directories = [] if path is None else [(self.root / path, path)]
        mode: Mode = "store" if path is None else "directory+store"
        site = Site(self.store, mode, directories, clock=lambda: self.clock[0])
        app = make_app(site, hosts=AllowedHosts.of("127.0.0.1", hosts), cors=cors, pages=False)
        client = TestClient(app, base_url="http://localhost:3200", raise_server_exceptions=False)
        self._clients.append(client)
        return client

    def get(self, path: str, client: TestClient | None = None, **params: Any) -> Any:
        """The JSON of an answer that must be 200."""
        if client is None:
            self._default = client = self._default or self.client()
        answer = client.get(f"/api{path}", params=params)
        assert answer.status_code == 200, answer.text
        document = answer.json()
        check_answer(f"/api{path}", document)
        return document

    def close(self) -> None:
        """Close everything."""
        for client in self._clients:
            client.close()
        self.store.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Makes empty databases on a real server and gives their URLs."""
    from postgres import server
    from sqlalchemy import create_engine, text

    with server() as url:
        numbers = count()
        engine = create_engine(f"{url}/postgres", isolation_level="AUTOCOMMIT")

        def make() -> str:
            name = f"results_{next(numbers)}"
            with engine.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            return f"{url}/{name}"

        yield make
        engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store]:
    """Makes stores by name; on PostgreSQL each is a database of its own."""
    if request.param == "sqlite":
        return lambda name: open_store(f"{name}.db", tmp_path, create=True)
    make = request.getfixturevalue("postgres")
    return lambda _: open_store(make(), tmp_path, create=True)


@pytest.fixture
def kit(make_store: Callable[[str], Store], tmp_path: Path) -> Iterator[Kit]:
    """An empty tree and an empty store."""
    made = Kit(tmp_path / "tree", make_store("history"))
    (tmp_path / "tree" / "runs").mkdir(parents=True)
    yield made
    made.close()


@pytest.fixture(name="trial")
def trial_fixture() -> Callable[..., dict[str, Any]]:
    """Makes a trial record."""
    return trial


@pytest.fixture(name="summary")
def summary_fixture() -> Callable[..., dict[str, Any]]:
    """Makes a run summary."""
    return summary


@pytest.fixture
def trials() -> list[dict[str, Any]]:
    """The trials of the usual run."""
    return [dict(item) for item in TRIALS]
