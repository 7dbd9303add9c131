"""Import of the log of a Copilot CLI session."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from vally.errors import VallyError
from vally.model.views import final_output
from vally.run.imports.imported import Imported, finished, moment, span_ms, with_turns
from vally.run.imports.session_events import Native, SessionEvents, agent_of, is_silent
from vally.run.results_file import ReadProblem, read_lines

LOG_NAME = "events.jsonl"
EXECUTOR = "copilot-cli"


def is_session_event(record: Mapping[str, Any]) -> bool:
    """Whether a line can only be an event of a session: the types of nothing else have a dot."""
    kind = record.get("type")
    return isinstance(kind, str) and "." in kind


def import_session(path: Path, *, prompts: Sequence[str] = ()) -> Imported:
    """The trajectory of a session log, or of the session directory that holds it.

    `prompts` are those of the stimulus, by which events get their conversation turn. Raises `VallyError` for a session
    without a user message, and `OSError`.
    """
    log = path / LOG_NAME if path.is_dir() else path
    problems: list[ReadProblem] = []
    with log.open("rb") as file:
        return import_session_file(file, problems, path=str(log), prompts=prompts)


def import_session_file(
    file: IO[bytes], problems: list[ReadProblem], *, path: str | None = None, prompts: Sequence[str] = ()
) -> Imported:
    """The same for an open file; `path` is recorded as its origin."""
    log = _Log()
    for native in _natives(line.record for line in read_lines(file, problems)):
        log.add(native)
    warnings = [f"line {problem.line} is skipped: {problem.message}" for problem in problems]
    imported = log.imported(warnings, path)
    return Imported(with_turns(imported.trajectory, prompts), imported.warnings)


def _natives(records: Iterable[dict[str, Any]]) -> Iterator[Native]:
    """The events that count: neither ephemeral nor seen before."""
    seen: set[str] = set()
    for record in records:
        if not isinstance(record.get("type"), str) or record.get("ephemeral") is True:
            continue
        name = record.get("id")
        if isinstance(name, str):
            if name in seen:
                continue
            seen.add(name)
        data = record.get("data")
        yield record if isinstance(data, Mapping) else {**record, "data": {}}


@dataclass(slots=True)
class _Log:
    """What a log tells beside its events."""

    mapped: SessionEvents = field(default_factory=SessionEvents)
    start: Mapping[str, Any] = field(default_factory=dict)
    shutdown: Native | None = None
    skills: list[str] = field(default_factory=list)
    first_prompt: object = None
    last: object = None
    has_prompt: bool = False
    aborted: bool = False
    failed: bool = False
    output_tokens: int = 0

    def add(self, native: Native) -> None:
        kind, data = native["type"], native["data"]
        before = len(self.mapped.events)
        self.mapped.add(native)
        if kind == "session.start":
            self.start = self.start or data
        elif kind == "session.skills_loaded":
            self.skills = _skill_names(data)
        elif kind == "session.shutdown":
            self.shutdown = native
        if len(self.mapped.events) > before and self.mapped.events[-1].type == "user_message":
            self.has_prompt = True
            self.aborted = self.failed = False
            self.first_prompt = self.first_prompt or native.get("timestamp")
        if self.shutdown is None and not is_silent(kind):
            self.last = native.get("timestamp") or self.last
        self._note_end(kind, native, data)

    def _note_end(self, kind: str, native: Native, data: Mapping[str, Any]) -> None:
        if kind == "abort":
            self.aborted = True
        elif kind == "session.error":
            self.failed = True
        elif kind == "assistant.message":
            tokens = data.get("outputTokens")
            self.output_tokens += tokens if type(tokens) is int and tokens > 0 else 0
            content = data.get("content")
            if agent_of(native) is None and isinstance(content, str) and content.strip():
                self.failed = False

    def imported(self, warnings: list[str], path: str | None) -> Imported:
        if not self.has_prompt:
            raise VallyError("session has no user message", code="bad-session")
        mapped = self.mapped
        if not mapped.has_skill_events:
            mapped.activate_skills_by_calls()
        if not mapped.has_usage:
            warnings += self._summed_usage()
        context = self.start.get("context")
        version = self.start.get("copilotVersion")
        metadata = {
            "model": self.start.get("selectedModel"),
            "executor": EXECUTOR,
            "executorVersion": version,
            "skillsLoaded": self.skills,
            "startedAt": moment(self.start.get("startTime")) or moment(self.first_prompt),
            "completedAt": moment(self.last),
            "sessionID": self.start.get("sessionId"),
        }
        origin = {"format": "copilot-session", "version": str(self.start.get("version") or 1), "path": path}
        directory = context.get("cwd") if isinstance(context, Mapping) else None
        fields: dict[str, Any] = {
            "id": str(self.start.get("sessionId") or uuid.uuid4()),
            "output": final_output(mapped.events),
            "work_dir": directory if isinstance(directory, str) else "",
            "end_reason": self._end_reason(),
            "metadata": {key: value for key, value in metadata.items() if value is not None},
            "session_path": path,
            "imported_from": {key: value for key, value in origin.items() if value is not None},
        }
        return finished(fields, mapped.events, span_ms(self.first_prompt, self.last), warnings)

    def _end_reason(self) -> str:
        if self.aborted:
            return "cancelled"
        if self.failed or (self.shutdown is not None and self.shutdown["data"].get("shutdownType") == "error"):
            return "error"
        return "unknown" if self.mapped.open_main_turn() else "completed"

    def _summed_usage(self) -> list[str]:
        """Token usage for a log without usage lines: of its last shutdown, else of its messages; with a warning."""
        metrics = self.shutdown["data"].get("modelMetrics") if self.shutdown is not None else None
        if self.shutdown is not None and isinstance(metrics, Mapping) and metrics:
            for model, figures in metrics.items():
                usage = figures.get("usage") if isinstance(figures, Mapping) else None
                self.mapped.add_usage(usage if isinstance(usage, Mapping) else {}, str(model), self.shutdown)
            return []
        if not self.output_tokens:
            return []
        model = self.start.get("selectedModel")
        usage = {"inputTokens": 0, "outputTokens": self.output_tokens}
        self.mapped.add_usage(usage, model if isinstance(model, str) else None, {"timestamp": self.last})
        return ["the session records no token usage: output tokens are those of its messages, input tokens are 0"]


def _skill_names(data: Mapping[str, Any]) -> list[str]:
    found = data.get("skills")
    names = [
        item.get("name") if isinstance(item, Mapping) else item
        for item in (found if isinstance(found, list) else [])
        if not (isinstance(item, Mapping) and item.get("enabled") is False)
    ]
    return sorted({name for name in names if isinstance(name, str)})
