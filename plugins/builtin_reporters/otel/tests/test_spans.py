"""The spans of a run: their tree, times and attributes, and what is not in them."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vally import ErrorInfo, GraderResult, Phases
from vally.testing import event, trajectory, trial_result
from vally_reporter_otel.file import FileDelivery

Tell = Callable[..., Any]
SECRET = "what the agent, its tools and graders said"


def at(milliseconds: int, kind: str, agent: str | None = None, **data: Any) -> Any:
    made = event(kind, **data)
    made.timestamp = f"2026-01-02T03:04:{5 + (678 + milliseconds) // 1000:02d}.{(678 + milliseconds) % 1000:03d}Z"
    if agent:
        made.agent_id, made.agent_name = agent, f"{agent}-name"
    return made


def acted() -> Any:
    done = trajectory(
        at(100, "user_message", content=SECRET),
        at(400, "token_usage", inputTokens=1000, outputTokens=20, model="gpt-x"),
        at(400, "assistant_message", content=SECRET),
        at(500, "tool_call", toolName="bash", toolCallId="c1", arguments={"command": SECRET}),
        at(700, "tool_result", toolName="bash", toolCallId="c1", success=False, result=SECRET, errorCode="exit"),
        at(750, "tool_call", "sub", toolName="view", toolCallId="c2", arguments=SECRET),
        at(780, "tool_result", "sub", toolName="view", toolCallId="c2", success=True, result=SECRET),
        at(800, "tool_call", toolName="hangs", toolCallId="c3"),
        at(850, "error", message=SECRET),
        output=SECRET,
    )
    metadata = {"model": "gpt-x-1", "sessionID": "session-7"}
    return done.model_copy(update={"metadata": metadata, "stimulus": {"prompt": SECRET}})


def judged() -> list[GraderResult]:
    metadata = {"model": "gpt-j", "latencyMs": 50, "tokenUsage": {"inputTokens": 7, "outputTokens": 3}}
    one = GraderResult.verdict(
        True, SECRET, score=0.8, name="quality", grader_type="prompt", kind="llm", metadata=metadata
    )
    failed = GraderResult.error(SECRET, kind="judge", name="judge b", result_kind="llm", metadata={"model": "m2"})
    panel = GraderResult.verdict(True, SECRET, name="panel", grader_type="panel", kind="llm", details=[one, failed])
    broken = GraderResult.error(SECRET, kind="program", name="runs", grader_type="program")
    return [GraderResult.verdict(False, SECRET, name="has port", grader_type="output-contains"), one, panel, broken]


def full(**fields: Any) -> Any:
    phases = Phases(setup_ms=100, agent_ms=900, capture_ms=0, grade_ms=200)
    return trial_result("s", *judged(), trajectory=acted(), phases=phases, attempts=1, **fields)


def test_the_tree_of_a_trial(spans: Tell) -> None:
    made = spans(full())
    run = made.named("vally.run")
    assert run.parent == ""
    assert made.below(run) == ["vally.trial"]
    assert made.below(made.named("vally.trial")) == ["vally.preparing", "vally.running", "vally.grading"]
    assert made.below(made.named("vally.running")) == ["invoke_agent scripted"]
    assert made.below(made.named("invoke_agent scripted")) == [
        "invoke_agent sub-name",
        "chat gpt-x",
        "execute_tool bash",
        "execute_tool hangs",
    ]
    assert made.below(made.named("invoke_agent sub-name")) == ["execute_tool view"]
    assert made.below(made.named("vally.grading")) == [
        "vally.grade has port",
        "vally.grade quality",
        "vally.grade panel",
        "vally.grade runs",
    ]
    assert made.below(made.named("vally.grade quality")) == ["chat gpt-j"]
    assert made.below(made.named("vally.grade panel")) == ["chat gpt-j", "chat m2"]


def test_parents_exist_and_ids_are_unique(spans: Tell) -> None:
    made = spans(*(full(trial_index=index, total_trials=3) for index in range(3)))
    ids = [span.id for span in made.all]
    assert len(ids) == len(set(ids))
    assert {span.parent for span in made.all} - {""} <= set(ids)
    assert len({span.trace for span in made.all}) == 1
    assert all(len(span.id) == 16 and len(span.trace) == 32 and int(span.id, 16) for span in made.all)


def test_times(spans: Tell) -> None:
    made = spans(full())
    times = {span.name: (span.start, span.end) for span in made.all}
    assert times["vally.trial"] == (0, 1234)
    assert times["vally.preparing"] == (0, 100)
    assert times["vally.running"] == times["invoke_agent scripted"] == (100, 1000)
    assert times["vally.grading"] == (1000, 1200)
    assert times["chat gpt-x"] == (100, 400)
    assert times["execute_tool bash"] == (500, 700)
    assert times["execute_tool hangs"] == (800, 1000)
    assert times["chat gpt-j"] == (1000, 1050)
    assert times["invoke_agent sub-name"] == (750, 780)
    assert all(span.start <= span.end for span in made.all)


def test_attributes(spans: Tell) -> None:
    made = spans(full(run_id="scripted", variant="v"))
    facts = {
        "vally.run_id": "scripted",
        "vally.item_id": "eval.yaml::v::default-model::s::trial-0",
        "vally.eval": "scripted",
        "vally.stimulus": "s",
        "vally.variant": "v",
        "vally.trial_index": 0,
        "vally.status": "success",
    }
    assert made.named("vally.trial").attributes == facts
    assert made.named("vally.running").attributes == facts
    assert made.named("vally.run").attributes == {"vally.run_id": "scripted", "vally.status": "completed"}
    assert made.named("invoke_agent scripted").attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "scripted",
        "gen_ai.request.model": "gpt-x-1",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.conversation.id": "session-7",
    }
    chat, tool = made.named("chat gpt-x"), made.named("execute_tool bash")
    assert (chat.kind, tool.kind) == (3, 1)
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 20,
    }
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": "c1",
        "error.type": "exit",
    }
    assert tool.failed
    assert made.named("vally.grade has port").attributes == {
        "vally.grader_type": "output-contains",
        "vally.passed": False,
        "vally.score": 0.0,
    }
    assert made.named("vally.grade runs").attributes == {"vally.grader_type": "program", "error.type": "program"}
    assert made.named("vally.grade runs").failed
    assert made.named("chat m2").failed


def test_the_score_of_a_trial(spans: Tell) -> None:
    good = GraderResult.verdict(True, "e", score=0.8, name="g")
    assert spans(trial_result("s", good)).named("vally.trial").attributes["vally.score"] == 0.8


def test_no_text_is_in_them(spans: Tell) -> None:
    errored = trial_result("e", status="error", error=SECRET, error_info=ErrorInfo(message=SECRET, code="boom"))
    made = spans(full(), errored)
    assert len(made.all) > 10
    assert SECRET not in made.text


def test_an_errored_trial(spans: Tell) -> None:
    info = ErrorInfo(message="x", code="provider-error", phase="running")
    phases = Phases(setup_ms=10, agent_ms=20)
    made = spans(trial_result("e", status="error", error="x", error_info=info, phases=phases, attempts=3))
    trial = made.named("vally.trial")
    assert trial.failed
    assert trial.attributes["error.type"] == "provider-error"
    assert made.named("vally.running").failed
    assert not made.named("vally.preparing").failed
    assert made.named("vally.run").failed
    # The phases are those of the last of several attempts.
    assert made.named("vally.running").end == trial.end == 1234


def test_there_is_one_line_per_trial(spans: Tell) -> None:
    made = spans(*(full(trial_index=index, total_trials=4) for index in range(4)))
    assert len(made.lines) == 4
    assert [sum(name == "vally.trial" for name in names(line)) for line in made.lines] == [1, 1, 1, 1]
    assert [sum(name == "vally.run" for name in names(line)) for line in made.lines] == [0, 0, 0, 1]
    (resource,) = made.lines[0]["resourceSpans"]
    attributes = {item["key"]: item["value"]["stringValue"] for item in resource["resource"]["attributes"]}
    assert attributes == {"service.name": "vally", "service.version": "1.2.3"}
    assert resource["scopeSpans"][0]["scope"] == {"name": "vally", "version": "1.2.3"}


def names(line: dict[str, Any]) -> list[str]:
    return [span["name"] for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def test_what_did_not_run_has_no_spans(spans: Tell) -> None:
    made = spans(trial_result("s", status="skipped", skip_reason="cancelled"), stop_reason="interrupted")
    assert made.text == ""


def test_what_the_executor_skipped_has(spans: Tell) -> None:
    made = spans(trial_result("s", status="skipped", skip_reason="no browser", attempts=1))
    assert made.named("vally.trial").attributes["vally.status"] == "skipped"


def test_a_run_of_nothing_writes_nothing(spans: Tell) -> None:
    assert spans().text == ""


@pytest.mark.parametrize(
    ("run_id", "number"),
    [("7282851e-0456-471b-a0b8-f0cd625d3113", "7282851e0456471ba0b8f0cd625d3113"), ("nightly", None)],
)
def test_the_trace_follows_from_the_run(run_id: str, number: str | None) -> None:
    from vally_reporter_otel.spans import trace_id

    made = f"{trace_id(run_id):032x}"
    assert made == (number or made)
    assert trace_id(run_id) == trace_id(run_id)
    assert trace_id(run_id) != trace_id(run_id + "x")
    assert trace_id("00000000-0000-0000-0000-000000000000") == 1


def test_odd_records_are_spans_all_the_same(spans: Tell) -> None:
    odd = trajectory(
        event("token_usage", inputTokens=-1, outputTokens="many", model=None),
        event("tool_call", toolName=None, arguments=None),
        event("tool_call", toolName="x" * 5_000, toolCallId="\u2028\x00\ud800"),
        event("tool_result", toolCallId="c9"),
        event("made up"),
    ).model_copy(update={"metadata": {"model": 7, "sessionID": []}, "metrics": None})
    made = spans(trial_result("a\nb\u2028", trajectory=odd, started_at=None, phases=None))
    assert len(made.text.splitlines()) == len(made.lines) == 1
    assert made.named("chat unknown").attributes["gen_ai.request.model"] == "unknown"
    assert "gen_ai.usage.input_tokens" not in made.named("chat unknown").attributes
    assert max(len(span.name) for span in made.all) < 300


def test_lines_are_read_back_by_the_library(spans: Tell) -> None:
    from opentelemetry.proto_json.collector.trace.v1.trace_service import ExportTraceServiceRequest

    for line in spans(full()).lines:
        assert ExportTraceServiceRequest.from_dict(line).to_dict() == line


def test_what_is_written_does_not_follow_the_environment(spans: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "token=abcdefgh")
    made = spans(full())
    assert len(made.all) > 10
    assert "abcdefgh" not in made.text


def test_the_lines_of_an_earlier_part_are_written_anew(tmp_path: Any) -> None:
    path = tmp_path / "otel-spans.jsonl"
    path.write_bytes(b"{}\n")
    delivery = FileDelivery(path)
    delivery.send(b'{"a":1}')
    assert path.read_bytes() == b'{"a":1}\n'
    assert delivery.close() is None


class Full:
    """A file on a disk that has room for so many bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self._room = file, room

    def write(self, data: Any) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written: int = self._file.write(data[: self._room])
        self._room -= written
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize(
    ("room", "left", "problem"),
    [
        (0, None, "no spans were written to otel-spans.jsonl: No space left on device"),
        (7, None, "no spans were written to otel-spans.jsonl: No space left on device"),
        (8, b'{"a":1}\n', "otel-spans.jsonl ends before the run does: No space left on device"),
        (12, b'{"a":1}\n', "otel-spans.jsonl ends before the run does: No space left on device"),
        (16, b'{"a":1}\n{"b":2}\n', "otel-spans.jsonl ends before the run does: No space left on device"),
        (24, b'{"a":1}\n{"b":2}\n{"c":3}\n', None),
    ],
)
def test_a_full_disk_leaves_whole_lines_and_is_told(
    room: int, left: bytes | None, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = tmp_path / "otel-spans.jsonl", Path.open
    monkeypatch.setattr(Path, "open", lambda *args, **options: Full(opened(*args, **options), room))
    delivery = FileDelivery(path)
    for line in (b'{"a":1}', b'{"b":2}', b'{"c":3}'):
        delivery.send(line)
    monkeypatch.undo()
    assert delivery.close() == problem
    assert (path.read_bytes() if path.exists() else None) == left


def test_a_directory_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "otel-spans.jsonl"
    path.mkdir()
    delivery = FileDelivery(path)
    delivery.send(b"{}")
    assert delivery.close() == "no spans were written to otel-spans.jsonl: Is a directory"


def test_the_run_spans_all_of_its_trials(spans: Tell) -> None:
    made = spans(full(started_at="2026-01-01T00:00:00.000Z"), full(trial_index=1))
    run = made.named("vally.run")
    assert run.start == 0
    assert all(run.start <= span.start and span.end <= run.end for span in made.all)


def test_the_library_is_imported_late() -> None:
    script = (
        "import sys; from vally_reporter_otel.reporter import OtelReporter; OtelReporter();"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
