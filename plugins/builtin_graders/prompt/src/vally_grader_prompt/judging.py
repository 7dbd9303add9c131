"""One call of a judge, and the error results of calls that fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import GraderResult, JudgeClient, JudgeError, JudgeReply, JudgeRequest, ToolSchema, VallyError
from vally_grader_prompt.submission import Check

TIMEOUT_S = 120
MAX_REMINDERS = 2


class JudgeFailed(VallyError):
    """A call gave no grade: the evidence of its result, and in `detail` what the judge said about it."""

    def __init__(self, message: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.detail = detail or message

    def result(self, name: str, metadata: dict[str, Any]) -> GraderResult:
        """The error result."""
        return GraderResult.error(
            self.message, kind="judge", message=self.detail, name=name, result_kind="llm", metadata=metadata
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What every judge of an entry is asked alike."""

    system_message: str
    user_message: str
    tool: ToolSchema
    check: Check
    evidence_dir: Path
    evidence_files: tuple[Path, ...]
    seed: int | None = None

    def request(self, model: str, effort: str | None) -> JudgeRequest:
        """The request to one model."""
        return JudgeRequest(
            model=model,
            reasoning_effort=effort,
            system_message=self.system_message,
            user_message=self.user_message,
            tool=self.tool,
            check=self.check,
            evidence_dir=self.evidence_dir,
            evidence_files=self.evidence_files,
            timeout_s=TIMEOUT_S,
            max_reminders=MAX_REMINDERS,
            seed=self.seed,
        )


def present(judge: JudgeClient | None) -> JudgeClient:
    """The judge; raises `JudgeFailed` when there is none."""
    if judge is None:
        raise JudgeFailed("No judge client is configured")
    return judge


async def ask(judge: JudgeClient, question: Question, *, model: str, effort: str | None) -> JudgeReply:
    """Ask one model and return a reply that passes the check; raises `JudgeFailed`."""
    try:
        reply = await judge.judge(question.request(model, effort))
    except JudgeError as error:
        raise _failure(error.kind, error.message, model) from error
    except Exception as error:
        raise _failure("transport", str(error) or type(error).__name__, model) from error
    problem = question.check(reply.args)
    if problem is not None:
        raise _failure("malformed", problem, model)
    return reply


def _failure(kind: str, message: str, model: str) -> JudgeFailed:
    texts = {
        "timeout": f"Judge timed out after {TIMEOUT_S}s (model {model})",
        "malformed": f"Judge did not return a valid grade after {MAX_REMINDERS} reminders: {message} (model {model})",
    }
    return JudgeFailed(texts.get(kind, f"Judge call failed: {message} (model {model})"), message)
