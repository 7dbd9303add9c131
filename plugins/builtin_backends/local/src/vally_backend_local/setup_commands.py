"""Set-up commands: shell lines run in the workspace, one after another; the first that fails ends the trial."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from vally import Environment, ProcessRunner, ProcessStartError
from vally_backend_local.failures import SetupError

TAIL_BYTES = 4096
_RESERVED = ("EVALUATE_", "VALLY_")


def shell(line: str) -> list[str]:
    """The command that runs a shell line."""
    return ["cmd.exe", "/d", "/s", "/c", line] if sys.platform == "win32" else ["/bin/sh", "-c", line]


def command_environment(
    process_env: Mapping[str, str],
    spec_env: Mapping[str, str],
    *,
    workspace: Path,
    trial_id: str,
    assets: Path | None,
    seed: int | None,
) -> dict[str, str]:
    """Environment of set-up commands and graders: the process environment, the spec's variables, what vally sets."""
    inherited = {name: value for name, value in process_env.items() if not name.upper().startswith(_RESERVED)}
    own = {"GIT_CEILING_DIRECTORIES": str(workspace.parent), "VALLY_TRIAL": trial_id}
    if assets is not None:
        own["EVALUATE_ASSETS"] = str(assets)
    if seed is not None:
        own["EVALUATE_SEED"] = str(seed)
    return {**inherited, **spec_env, **own}


async def run_commands(
    environment: Environment, runner: ProcessRunner, *, workspace: Path, env: Mapping[str, str]
) -> None:
    """Run the commands of an environment. Raises SetupError for the first that fails or takes too long."""
    for line in environment.commands:
        try:
            done = await runner.run(shell(line), cwd=workspace, env=env, timeout=environment.command_timeout_ms / 1000)
        except ProcessStartError as error:
            raise SetupError(f"Setup command failed ({error.message}): {line}", code="setup-command-failed") from error
        output = (done.stdout, done.stderr)
        if done.timed_out:
            text = f"Setup command timed out after {environment.command_timeout_text}: {line}"
            raise SetupError(_with_output(text, output), code="setup-command-timeout")
        if done.returncode != 0:
            how = f"exit {done.returncode}" if done.returncode is not None else str(done.signal)
            text = f"Setup command failed ({how}): {line}"
            details = {"exitCode": done.returncode, "signal": done.signal}
            raise SetupError(_with_output(text, output), code="setup-command-failed", details=details)


def _with_output(text: str, streams: Sequence[bytes]) -> str:
    output = b"\n".join(filter(None, (stream.strip() for stream in streams)))[-TAIL_BYTES:]
    shown = output.decode("utf-8", errors="replace")
    return f"{text}\n{shown}" if shown else text
