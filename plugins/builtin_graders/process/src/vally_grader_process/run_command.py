"""`run-command`: a command in the workspace exits as expected and prints the expected text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from vally import (
    Completed,
    GraderInput,
    GraderResult,
    ProcessStartError,
    Regex,
    compile_regex,
    describe_grader_value,
)
from vally_grader_process.child import (
    BadDirectory,
    child_environment,
    direct_command,
    outputs_metadata,
    seconds,
    shell_command,
    working_directory,
)
from vally_grader_process.run_command_config import RunCommandConfig

KEYWORD = "run-command"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the output of the command must fulfil, patterns compiled."""

    config: RunCommandConfig
    matches: list[Regex]
    not_matches: list[Regex]

    @classmethod
    def of(cls, config: RunCommandConfig) -> Conditions:
        """Compile all patterns; raises InvalidRegex for the first invalid one."""
        return cls(
            config,
            [compile_regex(pattern) for pattern in config.stdout_matches],
            [compile_regex(pattern) for pattern in config.stdout_not_matches],
        )

    def violations(self, completed: Completed) -> Iterator[str]:
        """Evidence parts of the conditions that do not hold, in the order of the config keys."""
        stdout = completed.stdout.decode("utf-8", "replace")
        stderr = completed.stderr.decode("utf-8", "replace")
        for text in self.config.stdout_contains:
            if text not in stdout:
                yield f"stdout does not contain '{text}'"
        for text in self.config.stderr_contains:
            if text not in stderr:
                yield f"stderr does not contain '{text}'"
        for regex in self.matches:
            if regex.search(stdout) is None:
                yield f"stdout does not match pattern /{regex.pattern}/"
        for regex in self.not_matches:
            if regex.search(stdout) is not None:
                yield f"stdout matches disallowed pattern /{regex.pattern}/"


class RunCommand:
    """Runs the command and evaluates all conditions."""

    async def grade(self, input: GraderInput[RunCommandConfig]) -> GraderResult:
        config = input.config
        conditions = Conditions.of(config)
        try:
            completed = await _run(input, working_directory(input))
        except BadDirectory as error:
            return GraderResult.verdict(False, str(error), name=KEYWORD)
        except ProcessStartError as error:
            evidence = f"Failed to start command '{config.shown}': {error.errno_name} (spawn)"
            return GraderResult.verdict(False, evidence, name=KEYWORD)
        passed, evidence = await anyio.to_thread.run_sync(
            _verdict, config, conditions, completed, abandon_on_cancel=True
        )
        return GraderResult.verdict(passed, evidence, name=KEYWORD, metadata=_metadata(completed))

    def default_name(self, config: RunCommandConfig) -> str:
        return f"{KEYWORD} {describe_grader_value(config.shown)}"


async def _run(input: GraderInput[RunCommandConfig], directory: Path) -> Completed:
    config = input.config
    if config.args is None:
        command = shell_command(config.command)
    else:
        command = direct_command(config.command, config.args, directory)
    return await input.runner.run(command, cwd=directory, env=child_environment(input), timeout=seconds(config.timeout))


def _verdict(config: RunCommandConfig, conditions: Conditions, completed: Completed) -> tuple[bool, str]:
    shown, expected = config.shown, config.expected_exit_code
    if completed.timed_out:
        return False, f"Command '{shown}' timed out after {config.timeout}"
    if completed.signal is not None:
        ended = f"was terminated by signal {completed.signal} (expected exit code {expected})"
        return False, f"Command '{shown}' {ended}"
    violations = list(conditions.violations(completed))
    base = f"Command '{shown}' exited with code {completed.returncode} (expected {expected})"
    return completed.returncode == expected and not violations, "; ".join([base, *violations])


def _metadata(completed: Completed) -> dict[str, object]:
    return {
        "exitCode": None if completed.timed_out else completed.returncode,
        "signal": completed.signal,
        "timedOut": completed.timed_out,
        "durationMs": completed.duration_ms,
        **outputs_metadata(completed),
    }
