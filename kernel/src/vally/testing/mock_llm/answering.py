"""From a request to the step of its script, and from the step to an answer."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vally.testing.mock_llm.conversation import Answer, AnswerCall, ModelRequest, call_id, new_group
from vally.testing.mock_llm.script import NO_SCRIPT, Call, Fault, Step, has_script, parse_script

GRADE_TOOLS = ("submit_grade", "submit_comparison")
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """What a request gets: the number of the step (None without a script), the step, and its key."""

    number: int | None
    step: Step
    key: str


def choose(request: ModelRequest, values: Mapping[str, str]) -> Choice:
    """Find the step of the script in the last user message that has one; raises `ScriptError`."""
    scripted = [i for i, turn in enumerate(request.turns) if turn.role == "user" and has_script(turn.text)]
    if not scripted:
        return Choice(None, Step(text=NO_SCRIPT), "")
    index = scripted[-1]
    script = parse_script(request.turns[index].text, values)
    number = request.answers_after(index)
    key = request.key(index, number)
    grade = script.grade(number)
    if grade is not None:
        tool = next((name for name in GRADE_TOOLS if name in request.tools), None)
        if tool is not None:
            return Choice(number, Step(calls=(Call(tool, grade),)), key)
        if request.wants_json:
            return Choice(number, Step(text=json.dumps(grade, ensure_ascii=False)), key)
    return Choice(number, script.step(number), key)


def make_answer(request: ModelRequest, step: Step) -> Answer:
    """The answer of a step, with fresh ids and its token counts."""
    group = new_group()
    calls = tuple(
        AnswerCall(call_id(group, i), call.name, call.arguments, request.tools.get(call.name, "function"))
        for i, call in enumerate(step.calls)
    )
    usage = step.usage
    return Answer(
        group=group,
        model=request.model,
        text=step.text,
        calls=calls,
        reasoning=step.reasoning,
        input_tokens=tokens(request.characters) if usage is None else usage.input,
        output_tokens=tokens(_characters(step)) if usage is None else usage.output,
        cached_tokens=0 if usage is None else min(usage.cached, usage.input),
    )


def tokens(characters: int) -> int:
    """The estimate for a text of this length."""
    return max(1, characters // CHARACTERS_PER_TOKEN)


def _characters(step: Step) -> int:
    calls: Sequence[Any] = [[call.name, dict(call.arguments)] for call in step.calls]
    return len(step.text or "") + len(step.reasoning or "") + (len(json.dumps(calls)) if calls else 0)


class FaultCounter:
    """The only state of the server: how often each limited fault of each conversation and step has happened."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def next(self, choice: Choice) -> Fault | None:
        """The fault for this request, or None when the step is to be answered."""
        with self._lock:
            for index, fault in enumerate(choice.step.faults):
                if fault.times is None:
                    return fault
                if self._seen[choice.key, index] < fault.times:
                    self._seen[choice.key, index] += 1
                    return fault
        return None
