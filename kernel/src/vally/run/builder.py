"""Building a trajectory while an agent runs, so that everything the plugin chapter asks of one holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from vally.model.jsonio import timestamp
from vally.model.metrics import compute_metrics
from vally.model.results import NO_MODEL
from vally.model.trajectory import Event, Trajectory
from vally.model.views import final_output
from vally.run.detaching import detached
from vally.run.event_log import EventLog
from vally.run.skill_reads import SkillReads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vally.model.evalspec import Stimulus
    from vally.run.inputs import ExecutorOptions

_END_OF_STOP = {"timeout": "agent_timeout", "cancelled": "cancelled"}


class Envelope(TypedDict, total=False):
    """What any event may carry: its own time (ISO 8601) and the sub-agent it belongs to."""

    timestamp: str | None
    agent_id: str | None
    agent_name: str | None


class TrajectoryBuilder:
    """Collects the events of one trial in the order of occurrence, one method per type of event.

    Each `user_message` opens the next conversation turn. Arguments that are None are left out. With `skill_events` the
    agent reports by itself which skills it uses; otherwise those it reads as files are found. `metadata` may be added
    to. `finish` may be called again after further events.
    """

    def __init__(
        self,
        stimulus: Stimulus,
        options: ExecutorOptions,
        *,
        executor: str,
        version: str | None = None,
        skill_events: bool = False,
    ) -> None:
        self._stimulus = stimulus
        self._options = options
        reads = None if skill_events else SkillReads(options.skills, options.work_dir)
        self._log = EventLog(len(stimulus.turns), options.on_event, reads)
        self._first_prompt: float | None = None
        self.metadata: dict[str, Any] = {
            "model": options.model or NO_MODEL,
            "executor": executor,
            "skillsLoaded": sorted(skill.name for skill in options.skills),
            "startedAt": timestamp(),
            "sessionID": options.trial_id,
        }
        self.metadata.update(_present({"reasoningEffort": options.reasoning_effort, "executorVersion": version}))

    @property
    def events(self) -> tuple[Event, ...]:
        """What was recorded so far."""
        return tuple(self._log.events)

    @property
    def turn(self) -> int:
        """The conversation turn that is open, from 0; -1 before the first prompt."""
        return self._log.turn

    @property
    def acted(self) -> bool:
        """Whether the agent said anything or called a tool."""
        return any(event.type in ("assistant_message", "tool_call") for event in self._log.events)

    def user_message(
        self,
        content: str,
        *,
        agent_mode: str | None = None,
        attachments: Iterable[str] = (),
        **envelope: Unpack[Envelope],
    ) -> Event:
        """A prompt was sent."""
        names = list(attachments) or None
        data = {"content": content, "agent_mode": agent_mode, "attachments": names}
        return self._add("user_message", envelope, data)

    def assistant_message(
        self, content: str, *, message_id: str | None = None, model: str | None = None, **envelope: Unpack[Envelope]
    ) -> Event:
        """The agent said something."""
        data = {"content": content, "messageId": message_id, "model": model}
        return self._add("assistant_message", envelope, data)

    def reasoning(self, content: str, **envelope: Unpack[Envelope]) -> Event:
        """The agent thought aloud."""
        return self._add("reasoning", envelope, {"content": content})

    def turn_start(self, turn_id: str | None = None, **envelope: Unpack[Envelope]) -> Event:
        """An assistant response begins; without an id it is numbered within the conversation turn and agent."""
        return self._add("turn_start", envelope, {"turnId": turn_id})

    def turn_end(self, turn_id: str | None = None, **envelope: Unpack[Envelope]) -> Event:
        """An assistant response is complete; without an id the one that is open."""
        return self._add("turn_end", envelope, {"turnId": turn_id})

    def tool_call(
        self,
        tool: str,
        *,
        call_id: str | None = None,
        arguments: object = None,
        turn_id: str | None = None,
        mcp_server: str | None = None,
        read_only: bool | None = None,
        simulated: bool | None = None,
        **envelope: Unpack[Envelope],
    ) -> Event:
        """The agent called a tool; an id that was used before is made unique, a missing one is made up."""
        data = {
            "toolName": tool,
            "toolCallId": call_id,
            "arguments": arguments,
            "turnId": turn_id,
            "simulated": simulated,
            "readOnly": read_only,
            "mcpServer": mcp_server,
        }
        return self._add("tool_call", envelope, data)

    def tool_result(
        self,
        call_id: str,
        *,
        success: bool,
        result: object = None,
        tool: str | None = None,
        detail: str | None = None,
        error_code: str | None = None,
        exit_code: int | None = None,
        simulated: bool | None = None,
        **envelope: Unpack[Envelope],
    ) -> Event:
        """A tool answered the latest call with this id, as the agent told it; a result without a call gets one.

        A failed call keeps its error text in `result`. `exit_code` is that of a shell command, when known.
        """
        data = {
            "toolName": tool,
            "toolCallId": call_id,
            "success": success,
            "result": result,
            "detail": detail,
            "errorCode": error_code,
            "exitCode": exit_code,
            "simulated": simulated,
        }
        return self._add("tool_result", envelope, data)

    def token_usage(
        self,
        input_tokens: int,
        output_tokens: int,
        *,
        model: str | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cost: Mapping[str, object] | None = None,
        **envelope: Unpack[Envelope],
    ) -> Event:
        """Tokens of one model call; `input_tokens` counts all of the prompt, cached tokens included."""
        data = {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "model": model or self.metadata["model"],
            "cacheReadTokens": cache_read_tokens,
            "cacheWriteTokens": cache_write_tokens,
            "reasoningTokens": reasoning_tokens,
            "cost": None if cost is None else dict(cost),
        }
        return self._add("token_usage", envelope, data)

    def skill_activation(
        self,
        name: str,
        *,
        path: str = "",
        plugin_name: str | None = None,
        allowed_tools: object = None,
        content: str | None = None,
        trigger: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> Event:
        """The agent took up a skill."""
        data = {
            "name": name,
            "path": path,
            "pluginName": plugin_name,
            "allowedTools": allowed_tools,
            "content": content,
            "trigger": trigger,
        }
        return self._add("skill_activation", envelope, data)

    def error(
        self,
        message: str,
        *,
        type: str | None = None,
        code: str | int | None = None,
        url: str | None = None,
        **envelope: Unpack[Envelope],
    ) -> Event:
        """The agent, its model or its provider failed."""
        return self._add("error", envelope, {"message": message, "type": type, "code": code, "url": url})

    def system(self, event_type: str, data: Mapping[str, object] | None = None, **envelope: Unpack[Envelope]) -> Event:
        """Something happened to the session itself, such as a compaction."""
        return self._add("system", envelope, {"eventType": event_type, **(data or {})})

    def custom(self, event_type: str, data: Mapping[str, object] | None = None, **envelope: Unpack[Envelope]) -> Event:
        """Anything else worth keeping."""
        return self._add("custom", envelope, {"eventType": event_type, **(data or {})})

    def record(self, event: Event) -> Event:
        """Take over an event that was made elsewhere, such as by a parser; the same rules hold."""
        self._note_prompt(event)
        return self._log.record(detached(event))

    def replay(self, event: Event) -> Event:
        """Take over an event of a recorded session as it is, its ids unchanged and nothing added to it."""
        self._note_prompt(event)
        return self._log.replay(detached(event))

    def finish(self, end_reason: str) -> Trajectory:
        """Return the trajectory of what was recorded; `end_reason` is one of the records chapter, e.g. `completed`."""
        self._log.number_turns()
        return Trajectory(
            id=self._options.trial_id,
            stimulus={**self._stimulus.document, "name": self._stimulus.name, "prompt": self._stimulus.prompt},
            events=list(self._log.events),
            metrics=compute_metrics(self._log.events).model_copy(update={"wall_time_ms": self._wall_time_ms()}),
            output=final_output(self._log.events),
            work_dir=str(self._options.work_dir),
            metadata={**self.metadata, "completedAt": timestamp()},
            end_reason=end_reason,
        )

    def finish_stopped(self) -> Trajectory:
        """Finish what the stop signal ended, or a time limit that the executor keeps itself."""
        return self.finish(_END_OF_STOP.get(self._options.stop.reason or "timeout", "cancelled"))

    def _add(self, type_: str, envelope: Envelope, data: Mapping[str, object]) -> Event:
        event = Event(type=type_, data=_present(data), **envelope)
        self._note_prompt(event)
        return self._log.record(event)

    def _note_prompt(self, event: Event) -> None:
        if self._first_prompt is None and event.type == "user_message":
            self._first_prompt = time.monotonic()

    def _wall_time_ms(self) -> int:
        return 0 if self._first_prompt is None else round((time.monotonic() - self._first_prompt) * 1000)


def _present(data: Mapping[str, object]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}
