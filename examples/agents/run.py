"""Run the experiment of this directory with a scripted model: no key, no network.

Each agent that is installed gets a model server of its own, because each has its own name for its shell. Arguments are
handed to `vally experiment run`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from vally.testing import MockLlm

HERE = Path(__file__).parent
# How each agent's shell is called: the name of the tool, and of the argument that holds the command.
SHELLS = {
    "copilot": ("bash", "command"),
    "claude": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    "opencode": ("bash", "command"),
}
# What the scripted model does in each turn; the servers fill in the names.
FIRST = """
!tool ${SHELL} {"${COMMAND}": "echo hello > hello.txt; cat hello.txt", "description": "as asked"}
!say Created."""
SECOND = """
!tool ${SHELL} {"${COMMAND}": "echo goodbye >> hello.txt", "description": "as asked"}
!say Appended."""


def main(words: list[str]) -> int:
    """Start the servers, run the experiment with the agents that are here, and return its exit code."""
    found = [name for name in SHELLS if shutil.which(name)]
    for name in SHELLS:
        if name not in found:
            print(f"{name} is not on PATH and is left out", file=sys.stderr)
    if not found:
        return 1
    with ExitStack() as servers:
        addresses = {name: servers.enter_context(_server(name)).url for name in found}
        env = {f"{name.upper()}_URL": addresses.get(name, "http://127.0.0.1:9") for name in SHELLS}
        command = [sys.executable, "-m", "vally", "experiment", "run", str(HERE / "experiment.yaml"), *words]
        command += ["--param", f"FIRST={FIRST}", "--param", f"SECOND={SECOND}"]
        if len(found) < len(SHELLS):
            command += [word for name in found for word in ("--variant", name)]
        return subprocess.run(command, env={**os.environ, **env}, check=False).returncode


def _server(name: str) -> MockLlm:
    shell, command = SHELLS[name]
    return MockLlm(values={"SHELL": shell, "COMMAND": command})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
