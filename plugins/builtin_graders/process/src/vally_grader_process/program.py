"""`program`: an external program decides; it sees the whole grader input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread

from vally import (
    Completed,
    GraderInput,
    GraderResult,
    ProcessStartError,
    describe_grader_value,
    record_line,
)
from vally_grader_process.child import (
    BadDirectory,
    child_environment,
    direct_command,
    output_metadata,
    seconds,
    shell_command,
    working_directory,
)
from vally_grader_process.program_config import ProgramConfig
from vally_grader_process.reported import BadReport, Reported, parse_report

KEYWORD = "program"
MAX_STDOUT_BYTES = 10 * 2**20


class Program:
    """Runs the program and takes over its verdict."""

    async def grade(self, input: GraderInput[ProgramConfig]) -> GraderResult:
        try:
            completed = await _run(input, working_directory(input))
        except BadDirectory as error:
            return GraderResult.verdict(False, str(error), name=KEYWORD)
        except ProcessStartError as error:
            return _error(f"Failed to start grader program: {error.errno_name} (spawn)", {})
        return await anyio.to_thread.run_sync(_result, completed, abandon_on_cancel=True)

    def default_name(self, config: ProgramConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.shown)}"


async def _run(input: GraderInput[ProgramConfig], directory: Path) -> Completed:
    config = input.config
    if config.shell:
        command = shell_command(config.shown)
    else:
        command = direct_command(config.program, config.args, directory)
    with _input_file(input) as path:
        return await input.runner.run(
            command,
            cwd=directory,
            env=child_environment(input, EVALUATE_GRADER_INPUT=str(path)),
            timeout=seconds(config.timeout),
            max_bytes=MAX_STDOUT_BYTES,
        )


@contextmanager
def _input_file(input: GraderInput[ProgramConfig]) -> Iterator[Path]:
    """A private file with everything the program may know, removed at the end."""
    content = {
        "trajectory": input.trajectory,
        "stimulus": dict(input.stimulus.document),
        "config": input.config.without_secrets(),
    }
    descriptor, name = tempfile.mkstemp(prefix="vally-grader-input-", suffix=".json")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(record_line(content))
        yield path
    finally:
        path.unlink(missing_ok=True)


def _result(completed: Completed) -> GraderResult:
    metadata = _metadata(completed)
    if completed.timed_out:
        return _error("Grader timed out", metadata)
    if completed.stdout_truncated:
        return _error(f"Grader output exceeded {MAX_STDOUT_BYTES} bytes", metadata)
    text = completed.stdout.decode("utf-8", "replace").strip("\ufeff \t\r\n\f\v")
    if not text:
        return _silent(completed, metadata)
    try:
        return _reported(parse_report(text), completed, metadata)
    except BadReport as error:
        return _error(error.evidence, metadata, error.details)


def _silent(completed: Completed, metadata: dict[str, Any]) -> GraderResult:
    if completed.signal is not None:
        evidence = f"Grader was terminated by signal {completed.signal}"
    elif completed.returncode:
        evidence = f"Grader exited with exit code {completed.returncode}"
    else:
        evidence = "Grader exited successfully"
    return GraderResult.verdict(_succeeded(completed), evidence, name=KEYWORD, metadata=metadata)


def _reported(report: Reported, completed: Completed, metadata: dict[str, Any]) -> GraderResult:
    if report.passed and not _succeeded(completed):
        ended = f"exited with exit code {completed.returncode}"
        if completed.signal is not None:
            ended = f"was terminated by signal {completed.signal}"
        return _error(f"Grader reported a pass but {ended}", metadata)
    name = {} if report.name is None else {"reportedName": report.name}
    return report.detail().model_copy(
        update={"name": report.name or KEYWORD, "metadata": _merged(report, {**metadata, **name})}
    )


def _merged(report: Reported, metadata: dict[str, Any]) -> dict[str, Any]:
    own = report.detail().metadata or {}
    return {**own, **metadata}


def _succeeded(completed: Completed) -> bool:
    return completed.returncode == 0 and completed.signal is None


def _metadata(completed: Completed) -> dict[str, Any]:
    return {
        "exitCode": None if completed.timed_out else completed.returncode,
        **({} if completed.signal is None else {"signal": completed.signal}),
        "durationMs": completed.duration_ms,
        **output_metadata("stderr", completed.stderr, completed.stderr_truncated),
    }


def _error(evidence: str, metadata: dict[str, Any], details: str | None = None) -> GraderResult:
    return GraderResult.error(evidence, kind="program", message=details, name=KEYWORD, metadata=metadata)
