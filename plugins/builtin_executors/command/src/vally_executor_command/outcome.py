"""What the end of an agent process means for the trial."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vally import Completed, ExecutorError, ProcessStartError, segment
from vally_executor_command.config import CommandConfig
from vally_executor_command.dialects import ParsedTurn

STDERR_BYTES = 4096
_STATUS = re.compile(r"(?:api_error_status|status(?:[_ ]?code)?)[\"']?\s*[:=]?\s*[\"']?([45]\d\d)\b", re.IGNORECASE)
_CODE = re.compile(r'"code"\s*:\s*"?([45]\d\d)\b')
_RETRY_AFTER = re.compile(r"retry[-_ ]after[\"']?\s*[:=]\s*[\"']?(\d{1,6})\b", re.IGNORECASE)
_CONNECTION = re.compile(
    r"ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|connection (?:error|refused|reset)|unable to connect"
    r"|fetch failed|error sending request|stream disconnected|failed to get response from the ai model"
    r"|empty or malformed response|incomplete json segment",
    re.IGNORECASE,
)
_NO_LOGIN = re.compile(
    r"not logged in|run /login|gh auth login|no authentication information|set an auth method|login required",
    re.IGNORECASE,
)
_ACTS = frozenset({"assistant_message", "tool_call", "tool_result"})
_NOT_STARTABLE = frozenset({"ENOENT", "EACCES", "ENOEXEC", "ENOTDIR", "EPERM"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of the agent. With a `code` it is one of infrastructure, which ends the trial whatever came before."""

    message: str
    code: str | None = None
    retryable: bool = False
    retry_after_ms: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Names of the MCP servers and skills that the agent was given."""

    servers: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


def failure_of(
    done: Completed, parsed: ParsedTurn, stderr: str, config: CommandConfig, offered: Offered
) -> Failure | None:
    """Tell what went wrong in a turn that nobody stopped; None when nothing did. `stderr` is redacted."""
    details: dict[str, object] = {"stderr": stderr} if stderr else {}
    missing = _missing(parsed, stderr, config, offered)
    if missing is not None:
        code, message = missing
        return Failure(message=message, code=code, details=details)
    if done.signal is not None:
        message = f"the agent was ended by {done.signal}{_last_line(stderr)}"
        return Failure(message=message, code="agent-crashed", retryable=True, details=details)
    if done.returncode in config.success_exit_codes and parsed.error is None:
        return _unreadable(parsed, config.dialect, details) or _broken_off(parsed, details)
    if parsed.end_reason is not None and parsed.error is None:
        return None
    details["exitCode"] = done.returncode
    message = parsed.error or f"the agent ended with exit code {done.returncode}{_last_line(stderr)}"
    status = parsed.status or _status(parsed.error or stderr) or _code(parsed.error)
    if status is not None:
        return _provider_failure(status, message, details, stderr)
    if not parsed.acted and _NO_LOGIN.search(parsed.error or stderr):
        hint = "give it a key by 'passEnv', or another endpoint by 'provider'"
        return Failure(message=f"{message}; {hint}", code="executor-unavailable", details=details)
    if parsed.error is not None and _CONNECTION.search(parsed.error):
        return _provider_failure(None, message, details, stderr)
    if parsed.error is None and parsed.unfinished:
        # Programs that start the real one tell its crash by an exit code of their own.
        crash = f"the agent ended in the middle of a turn, with exit code {done.returncode}{_last_line(stderr)}"
        return Failure(message=crash, code="agent-crashed", retryable=True, details=details)
    return Failure(message=message, details=details)


def _missing(parsed: ParsedTurn, stderr: str, config: CommandConfig, offered: Offered) -> tuple[str, str] | None:
    """Code and message when the agent went on without something it was given."""
    told = config.agent.failed_servers(stderr, offered.servers) if config.agent and offered.servers else {}
    for name, reason in {**parsed.failed_servers, **told}.items():
        return "mcp-server-failed", f"MCP server '{name}' failed: {reason}"
    loaded = parsed.skills
    lost = [] if loaded is None else [name for name in offered.skills if not {name, segment(name)} & set(loaded)]
    if lost:
        return "skill-not-loaded", f"the agent did not load the offered skill '{lost[0]}'"
    return None


def refusal_of(parsed: ParsedTurn, stderr: str, dialect: str) -> Failure | None:
    """What a provider refused a turn that was stopped while the agent was still trying; None when it did not."""
    details = {"stderr": stderr} if stderr else {}
    status = parsed.status or _status((parsed.error if parsed.waiting else stderr) or "")
    if parsed.waiting:
        message = parsed.error or "the provider refused a request"
    elif dialect != "text" and not parsed.acted and status is not None:
        # Some agents tell of their attempts on stderr only.
        message = "the provider refused a request"
    else:
        return None
    told = f"{message}; the agent was trying again when its time was over"
    return _provider_failure(status, told, details, stderr)


def start_error(error: ProcessStartError, hint: str | None = None) -> ExecutorError:
    """Word a process that could not be started; `hint` tells how to get the program."""
    if error.errno_name in _NOT_STARTABLE:
        return ExecutorError(f"{error.message}; {hint}" if hint else error.message, code="executor-unavailable")
    if error.errno_name in ("E2BIG", "EINVAL"):
        return ExecutorError(error.message, code="executor-config")
    return ExecutorError(error.message, code="agent-start-failed", retryable=True)


def _unreadable(parsed: ParsedTurn, dialect: str, details: Mapping[str, object]) -> Failure | None:
    if parsed.unreadable is None:
        return None
    what = f"output that is not of dialect '{dialect}'" if parsed.unreadable else "no output"
    more = {**details, "line": parsed.unreadable}
    return Failure(message=f"the agent ended in order with {what}", code="agent-protocol", details=more)


def _broken_off(parsed: ParsedTurn, details: Mapping[str, object]) -> Failure | None:
    """An output that ends before the answer: programs may end in order before all they wrote is through the pipe."""
    acts = [event.type for event in parsed.events if event.type in _ACTS and event.agent_id is None]
    if not parsed.unfinished or parsed.end_reason is not None or acts[-1:] in ([], ["assistant_message"]):
        return None
    message = "the agent ended in order, but its output breaks off in the middle of a turn"
    return Failure(message=message, code="agent-protocol", details=details)


def tail(content: bytes) -> str:
    """The end of what an agent wrote to stderr."""
    return content[-STDERR_BYTES:].decode("utf-8", "replace").strip()


def _provider_failure(status: int | None, message: str, details: Mapping[str, object], text: str) -> Failure:
    error = ExecutorError.of_provider(message, status=status, details=details)
    wait = _RETRY_AFTER.search(text)
    return Failure(
        message=message,
        code=error.code,
        retryable=error.retryable,
        retry_after_ms=int(wait[1]) * 1000 if wait and status == 429 else None,
        details=error.details or {},
    )


def _status(text: str) -> int | None:
    found = _STATUS.findall(text)
    return int(found[-1]) if found else None


def _code(error: str | None) -> int | None:
    """The status in an error of the endpoint that the agent repeats as it came."""
    found = _CODE.search(error or "")
    return int(found[1]) if found else None


def _last_line(stderr: str) -> str:
    lines = stderr.splitlines()
    return f": {lines[-1].strip()[:500]}" if lines else ""
