"""From what an agent tells while it works to the events of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vally import TrajectoryBuilder, timestamp
from vally_executor_acp.agent import Params, mapping
from vally_executor_acp.calls import ENDED, Call
from vally_executor_acp.quirks import Quirks, has_failed
from vally_executor_acp.usage import Tokens

DENIED = "the permission policy does not allow this"
_CHUNKS = {"agent_message_chunk": "assistant_message", "agent_thought_chunk": "reasoning"}


@dataclass(slots=True)
class _Text:
    """Pieces of one message or thought that are still being told."""

    kind: str
    message_id: str | None
    began: str
    pieces: list[str] = field(default_factory=list)


class Updates:
    """Records the updates of one session.

    An agent turn opens with the first text or call of a prompt, and with the first text or new call after all earlier
    calls have ended; it closes before the next opens and at the end of the prompt.
    """

    def __init__(self, builder: TrajectoryBuilder, quirks: Quirks) -> None:
        self._builder = builder
        self._quirks = quirks
        self._text: _Text | None = None
        self._calls: dict[str, Call] = {}
        self._turn_open = False
        self._calls_in_turn = False
        self._suspect: Params | None = None
        self._failed = False
        self.failure: str | None = None
        self.cost: tuple[float, str] | None = None

    def begin(self) -> None:
        """A prompt is sent."""
        self._failed = self._turn_open = False
        self._suspect = None
        self.failure = None
        for call in self._calls.values():
            # What was interrupted before gets no result any more.
            call.ended = True

    def end(self, tokens: Tokens | None, *, model: str | None, cost: Params | None, complete: bool) -> None:
        """The prompt is over; an agent turn that is not complete stays open."""
        if self._suspect is not None:
            self.failure = _text_of(self._suspect)
            self._notice(self._suspect)
        self._flush()
        self._finish_denied()
        if tokens is not None:
            self._builder.token_usage(
                tokens.input,
                tokens.output,
                model=model,
                cache_read_tokens=tokens.cache_read,
                cache_write_tokens=tokens.cache_write,
                reasoning_tokens=tokens.reasoning,
                cost=cost,
            )
        if complete:
            self._close_turn()

    def take(self, update: Params) -> None:
        """Record one update; whatever an agent may send, this raises nothing."""
        kind = str(update.get("sessionUpdate"))
        if kind in _CHUNKS:
            self._chunk(_CHUNKS[kind], update)
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        else:
            self._other(kind, update)

    def ask(self, tool_call: Params) -> Call:
        """The agent asks for permission, which may be the first that is heard of a call."""
        return self._call(tool_call, from_request=True)

    def drop_text(self, part_of: str) -> None:
        """Forget a message that only repeats the text of an error."""
        text = self._text
        if text is not None and text.kind == "assistant_message" and "".join(text.pieces).strip() in part_of:
            self._builder.custom("notice", {"content": "".join(text.pieces)})
            self._text = None

    def _chunk(self, kind: str, update: Params) -> None:
        text = _text_of(update)
        if kind == "assistant_message":
            if self._failed:
                self.failure = f"{self.failure or ''}{text}".strip()
                return self._notice(update)
            if self._quirks.is_notice(update, text):
                return self._notice(update)
            if self._text is None and self._suspect is None and self._quirks.may_be_failure(text):
                self._suspect = update
                return None
        self._acquit()
        self._finish_denied()
        message_id = update.get("messageId")
        self._add(kind, text, message_id if isinstance(message_id, str) else None)
        return None

    def _add(self, kind: str, text: str, message_id: str | None) -> None:
        open_text = self._text
        if open_text is None or open_text.kind != kind or open_text.message_id != message_id:
            self._flush()
            self._open_turn()
            self._text = open_text = _Text(kind, message_id, timestamp())
        open_text.pieces.append(text)

    def _acquit(self) -> None:
        """What looked like a failure was an ordinary message: more came after it."""
        suspect, self._suspect = self._suspect, None
        if suspect is not None:
            self._add("assistant_message", _text_of(suspect), None)

    def _flush(self) -> None:
        text, self._text = self._text, None
        content = "" if text is None else "".join(text.pieces)
        if text is None or not content.strip():
            return
        record = self._builder.reasoning if text.kind == "reasoning" else self._builder.assistant_message
        record(content, timestamp=text.began)

    def _tool(self, update: Params) -> None:
        call = self._call(update)
        status = str(update.get("status"))
        if status in ENDED and not call.ended:
            self._end_call(call, success=status == "completed")

    def _call(self, told: Params, *, from_request: bool = False) -> Call:
        self._acquit()
        self._flush()
        call_id = str(told.get("toolCallId"))
        call = self._calls.get(call_id)
        if call is None:
            self._open_turn()
            call = self._calls[call_id] = Call(call_id, self._quirks.tools_named_by_id)
        if not call.ended:
            call.learn(told, from_request=from_request)
        if call.event is None:
            call.event = self._builder.tool_call(call.tool, call_id=call_id, arguments=call.arguments)
            self._calls_in_turn = True
        elif not call.ended:
            call.event.data |= {"toolName": call.tool, "arguments": call.arguments}
        if call.title:
            call.event.data["title"] = call.title
        if call.server is not None:
            call.event.data["mcpServer"] = call.server
        return call

    def _end_call(self, call: Call, *, success: bool) -> None:
        call.ended = True
        denied = call.denied and not success
        self._builder.tool_result(
            call.call_id,
            success=success,
            result=call.result or (DENIED if denied else ""),
            exit_code=call.found_exit_code(),
            error_code="denied" if denied else None,
        )

    def _finish_denied(self) -> None:
        """Agents do not always say that a call did not happen which they were not allowed."""
        for call in self._calls.values():
            if call.denied and not call.ended:
                call.facts.pop("content", None)
                self._end_call(call, success=False)

    def _other(self, kind: str, update: Params) -> None:
        self._failed = self._failed or has_failed(update)
        cost = mapping(update.get("cost"))
        amount, currency = cost.get("amount"), cost.get("currency")
        if isinstance(amount, int | float) and not isinstance(amount, bool) and isinstance(currency, str):
            self.cost = (float(amount), currency.lower())
        self._builder.custom(kind, _shortened(update))

    def _notice(self, update: Params) -> None:
        self._builder.custom("notice", {"content": _text_of(update)})

    def _open_turn(self) -> None:
        if self._turn_open and self._calls_in_turn and all(call.over for call in self._calls.values()):
            self._close_turn()
        if not self._turn_open:
            self._builder.turn_start()
            self._turn_open, self._calls_in_turn = True, False

    def _close_turn(self) -> None:
        if self._turn_open:
            self._builder.turn_end()
        self._turn_open = False


def _text_of(update: Params) -> str:
    content = mapping(update.get("content"))
    text = content.get("text")
    if isinstance(text, str):
        return text
    return f"[{content.get('type') or 'content'}]" if content else ""


def _shortened(update: Params) -> dict[str, Any]:
    """An update without what is the same in every session: the agent's commands and options keep their names."""
    kept = {key: value for key, value in update.items() if key != "sessionUpdate"}
    for key, name in (("availableCommands", "name"), ("configOptions", "id")):
        if isinstance(kept.get(key), list):
            kept[key] = [mapping(item).get(name) for item in kept[key]]
    return kept
