"""Real agents for tests: each is installed once from the npm registry, by name and version, and found again later.

A test calls `copilot()`, `claude()`, ... and gets an `Agent`. Without npm the test is skipped with the reason, or
fails when `CI` is set. Any number of test processes may ask at once: the first installs, the others wait for it.

`python tests/support/agents.py [NAME...]` installs ahead of the tests, as CI does.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 900
TRIES = 3


@dataclass(frozen=True, slots=True)
class Package:
    """An npm package at the version that is tested, and the name of its program."""

    npm: str
    version: str
    program: str

    @property
    def folder(self) -> Path:
        return agents_root() / f"{self.npm.replace('/', '+')}@{self.version}"


@dataclass(frozen=True, slots=True)
class Agent:
    """An installed agent; `program` can be started, `folder` holds the whole installation."""

    program: Path
    version: str
    folder: Path


PACKAGES = {
    "copilot": Package("@github/copilot", "1.0.102", "copilot"),
    "claude": Package("@anthropic-ai/claude-code", "2.1.332", "claude"),
    "codex": Package("@openai/codex", "0.171.0", "codex"),
    "gemini": Package("@google/gemini-cli", "0.61.0", "gemini"),
    "opencode": Package("opencode-ai", "1.18.33", "opencode"),
    "claude_agent_acp": Package("@agentclientprotocol/claude-agent-acp", "0.101.0", "claude-agent-acp"),
    "codex_acp": Package("@agentclientprotocol/codex-acp", "2.6.0", "codex-acp"),
}


class NoAgentError(Exception):
    """The agent cannot be installed here; the text is the reason."""


def copilot() -> Agent:
    return _provide("copilot")


def copilot_runtime() -> Path:
    """The small runtime that the Copilot CLI unpacks from itself; the SDK's server mode only."""
    agent = copilot()
    (found,) = (agent.folder / "cache").rglob("copilot-runtime")
    return found


def claude() -> Agent:
    return _provide("claude")


def codex() -> Agent:
    return _provide("codex")


def gemini() -> Agent:
    return _provide("gemini")


def opencode() -> Agent:
    return _provide("opencode")


def claude_agent_acp() -> Agent:
    return _provide("claude_agent_acp")


def codex_acp() -> Agent:
    return _provide("codex_acp")


def agents_root() -> Path:
    """Where agents are installed: `VALLY_TEST_AGENTS`, else below the user's cache directory."""
    if given := os.environ.get("VALLY_TEST_AGENTS"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vally-tests" / "agents"
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(caches) / "vally-tests" / "agents"


def _provide(name: str) -> Agent:
    import pytest

    try:
        return install(name)
    except NoAgentError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@functools.cache
def install(name: str) -> Agent:
    """Install an agent unless it is there already; raises `NoAgentError`."""
    package = PACKAGES[name]
    ready = package.folder / "ready"
    if not ready.exists():
        with locked(package.folder.with_name(package.folder.name + ".lock")):
            if not ready.exists():
                _fetch(package)
                if name == "copilot":
                    _unpack_copilot(package)
                ready.touch()
    return Agent(_program(package), package.version, package.folder)


def _fetch(package: Package) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NoAgentError(f"{package.npm} cannot be installed: npm is not on PATH")
    words = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(package.folder)]
    problem = ""
    for attempt in range(TRIES):
        # What an interrupted installation left is not to be built upon.
        shutil.rmtree(package.folder, ignore_errors=True)
        package.folder.mkdir(parents=True)
        time.sleep(attempt * 3)
        done = _run([*words, f"{package.npm}@{package.version}"], package.folder, {})
        if done.returncode == 0 and _program(package).exists():
            return
        problem = done.stderr.strip()[-2000:]
    raise NoAgentError(f"{package.npm}@{package.version} cannot be installed: {problem}")


def _unpack_copilot(package: Package) -> None:
    """The CLI unpacks its runtime below its cache directory when it first starts."""
    private = {"HOME": str(package.folder), "XDG_CACHE_HOME": str(package.folder / "cache")}
    done = _run([str(_program(package)), "--version"], package.folder, {**private, "COPILOT_AUTO_UPDATE": "false"})
    if done.returncode != 0:
        raise NoAgentError(f"{package.npm}@{package.version} does not start: {done.stderr.strip()[-2000:]}")


def _program(package: Package) -> Path:
    return package.folder / "node_modules" / ".bin" / package.program


def _run(words: list[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main(names: list[str]) -> int:
    failed = 0
    for name in names or list(PACKAGES):
        try:
            print(f"{name}: {install(name).program}", flush=True)
        except NoAgentError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
