"""What the state of plugins is said to be, whatever they do when they are asked."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from vally import (
    BackendError,
    BackendSpec,
    CliContext,
    Config,
    ExecutorError,
    ExecutorSpec,
    JudgeError,
    JudgeSpec,
    Record,
    RunContext,
    __version__,
)
from vally.testing import plugin_host, run_cli
from vally_command_doctor.examination import examine
from vally_command_doctor.findings import Findings
from vally_command_doctor.report import print_report


class Ended:
    """Remembers that it was shut down; nothing asks it to do its work."""

    ended: ClassVar[list[str]] = []

    async def execute(self, *_: object) -> None:
        raise AssertionError("not asked")

    judge = run_trial = grade_trial = execute

    async def shutdown(self) -> None:
        Ended.ended.append(type(self).__name__)


class Ready(Ended):
    async def preflight(self, config: object) -> str:
        return "with login of nobody"


class Plain(Ended):
    def configure(self, context: RunContext) -> None:
        assert context.run_id == "doctor"


class NoBinary(Ended):
    def preflight(self, config: object) -> None:
        raise ExecutorError("no program 'agent' \x1b[31mon PATH; get it from example.org", code="executor-unavailable")


class Exploding(Ended):
    def preflight(self, config: object) -> None:
        raise RuntimeError("boom")


class Leaving(Ended):
    def preflight(self, config: object) -> None:
        sys.exit(3)


class Picky(Config):
    needed: str


class Presets(NoBinary):
    def example_configs(self) -> dict[str, dict[str, object]]:
        return {"one": {"needed": "a"}, "two": {"needed": "b"}, "odd": {"other": "b"}}

    def preflight(self, config: Any) -> None:
        if config.needed != "a":
            super().preflight(config)


class NoPresets(Presets):
    def example_configs(self) -> dict[str, dict[str, object]]:
        return {"two": {"needed": "b"}}


class LocalJudge(Ended):
    def configure(self, provider: object) -> None:
        assert provider is None


class RemoteJudge(Ended):
    def configure(self, provider: object) -> None:
        raise JudgeError("needs an address", kind="unavailable")


class MuteJudge(LocalJudge):
    def preflight(self, model: str) -> None:
        raise JudgeError("nobody answers", kind="transport")


class ToldJudge(LocalJudge):
    """Starts only when it knows the run, and says where it may keep files."""

    def prepare(self, context: RunContext) -> None:
        self.told = str(context.cache_dir)

    def preflight(self, model: str) -> str:
        return f"keeps files in {self.told}"


class NoDaemon(Ended):
    async def prepare(self, args: object, context: RunContext) -> None:
        raise BackendError("no daemon runs", code="backend-unavailable", hints=("start it",))


class Lazy(Ended):
    async def prepare(self, args: object, context: RunContext) -> None:
        raise AssertionError("not asked")

    async def preflight(self, config: object, context: RunContext) -> str:
        return "two slots"


def executor(name: str, made: type, config: type[Config] | None = None) -> ExecutorSpec:
    return ExecutorSpec(name=name, summary="s", factory=made, config=config)


def judge(name: str, made: type, *types: str) -> JudgeSpec:
    return JudgeSpec(name=name, summary="s", factory=made, provider_types=types)


def backend(name: str, made: type) -> BackendSpec:
    return BackendSpec(name=name, summary="s", factory=made)


CASES: Sequence[tuple[Record, str, str]] = (
    (executor("x-ready", Ready), "ready", "with login of nobody"),
    (executor("x-plain", Plain), "ready", ""),
    (executor("x-picky", Plain, Picky), "needs-config", "'needed' is required"),
    (executor("x-no-binary", NoBinary), "missing", "no program 'agent'"),
    (executor("x-exploding", Exploding), "missing", "RuntimeError: boom"),
    (executor("x-leaving", Leaving), "missing", "SystemExit: 3"),
    (executor("x-presets", Presets, Picky), "ready", "with one; not with two, odd"),
    (executor("x-no-presets", NoPresets, Picky), "needs-config", "cannot start as it is with any of two"),
    (ExecutorSpec(name="x-broken", summary="s", factory="no_such_module:x"), "missing", "no_such_module"),
    (judge("x-local", LocalJudge, "x"), "ready", ""),
    (judge("x-remote", RemoteJudge, "x", "y"), "needs-config", "needs an address, type x or y"),
    (judge("x-default", RemoteJudge), "missing", "needs an address"),
    (judge("x-told", ToldJudge, "y"), "ready", "keeps files in "),
    (judge("x-mute", MuteJudge, "z"), "missing", "nobody answers"),
    (backend("x-no-daemon", NoDaemon), "missing", "no daemon runs"),
    (backend("x-lazy", Lazy), "ready", "two slots"),
)


def examined(tmp_path: Path, *plugins: object, env: dict[str, str] | None = None) -> Findings:
    """What is found where nothing but these plugins is installed."""
    environ = {"PATH": os.environ["PATH"], "VALLY_CACHE_DIR": str(tmp_path / "cache"), **(env or {})}
    return examine(plugin_host(*plugins), CliContext(environ=environ, cwd=tmp_path))


def printed(findings: Findings, tmp_path: Path, capsys: pytest.CaptureFixture[str], **display: Any) -> list[str]:
    context = CliContext(environ={}, cwd=tmp_path)
    context.display = replace(context.display, **display)
    print_report(findings, context, "text")
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("record", "status", "detail"), CASES, ids=[case[0].name for case in CASES])
def test_what_a_plugin_says(record: Record, status: str, detail: str, tmp_path: Path) -> None:
    Ended.ended.clear()
    (part,) = examined(tmp_path, record).parts
    assert (part.name, part.status) == (record.name, status)
    assert detail in part.detail
    if isinstance(record.factory, type):
        assert Ended.ended == [record.factory.__name__]


def test_a_line_each_behind_the_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(examined(tmp_path, *(case[0] for case in CASES)), tmp_path, capsys)
    assert lines[0].split() == ["vally", __version__]
    assert lines[1].split() == ["Python", ".".join(map(str, sys.version_info[:3]))]
    assert lines[2].split()[0] == "git"
    assert lines[3] == ""
    assert len(lines) == 4 + len(CASES)
    assert not any("\x1b" in line for line in lines)
    rows = [" ".join(line.split()) for line in lines]
    assert "✔ backend x-lazy ready: two slots" in rows
    assert "✘ backend x-no-daemon cannot start: no daemon runs; start it" in rows
    assert "✔ executor x-presets ready: with one; not with two, odd" in rows
    assert [line.split()[1] for line in lines[4:]] == sorted(
        (line.split()[1] for line in lines[4:]), key=["executor", "judge", "backend"].index
    )


def test_quiet_and_verbose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = examined(tmp_path, *(case[0] for case in CASES))
    quiet = "\n".join(printed(findings, tmp_path, capsys, quiet=True))
    assert "x-no-daemon" in quiet
    assert "ready" not in quiet
    verbose = "\n".join(printed(findings, tmp_path, capsys, verbose=True))
    assert "    two: no program 'agent'" in verbose


def test_only_what_cannot_start_is_missing(tmp_path: Path) -> None:
    assert not examined(tmp_path, executor("x-ready", Ready), executor("x-picky", Plain, Picky)).anything_missing
    assert examined(tmp_path, executor("x-no-binary", NoBinary)).anything_missing


def test_without_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = examined(tmp_path, env={"PATH": str(tmp_path)})
    assert findings.anything_missing
    assert "git     not found: install it" in printed(findings, tmp_path, capsys)[2]


def test_what_hangs_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Ended):
        async def preflight(self, config: object) -> None:
            await anyio.sleep_forever()

    monkeypatch.setattr("vally_command_doctor.examination.LIMIT_S", 0.2)
    (part,) = examined(tmp_path, executor("x-hanging", Hanging)).parts
    assert (part.status, part.detail) == ("missing", "did not answer within 0.2s")


def test_the_command_with_a_plugin_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import no_such_module\n")
    result = run_cli(["doctor", "--output", "json", "--strict", "--executor-plugin", "./bad.py"], cwd=tmp_path)
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["type"], document["version"], sorted(document["versions"])) == (
        "doctor",
        1,
        ["Python", "git", "vally"],
    )
    (bad,) = [part for part in document["parts"] if "bad.py" in part["name"]]
    assert (bad["status"], "no_such_module" in bad["detail"]) == ("missing", True)
