"""Commands of plugins that run evals in variants, with the example of the documentation and commands made here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import click
import pytest
from checkout import ROOT
from fences import write_files
from programs import SAYS_HELLO, write_spec

from vally import (
    Capabilities,
    CliContext,
    CommandSpec,
    ExecutorChoice,
    ExecutorSpec,
    PlanEntry,
    PlanOptions,
    ReadyExecutor,
    RunChoices,
    RunCommand,
    RunLayout,
    RunSession,
    SelectionWords,
    SpecSelection,
    display_options,
    make_plan,
    plugin_options,
    reporter_flags,
    run_options,
)
from vally.testing import CliResult, ScriptedExecutor, run_cli


@pytest.fixture
def twice(tmp_path: Path) -> Any:
    write_files(ROOT / "docs" / "plugins" / "commands.md", tmp_path)
    spec = importlib.util.spec_from_file_location("twice_command", tmp_path / "twice.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_example_of_the_documentation(twice: Any, tmp_path: Path) -> None:
    plugins = [twice, ScriptedExecutor(["hello"]).record("script")]
    write_spec(tmp_path, ["a", "b"], executor="script", defaults={"runs": 2})
    result = run_cli(["twice", "-e", "eval.yaml", "--workers", "3"], cwd=tmp_path, plugins=plugins)
    assert result.exit_code == 0, result.stderr
    (run_dir,) = (tmp_path / "twice-results").iterdir()
    for variant in ("first", "second"):
        *trials, summary = lines(run_dir / variant / "results.jsonl")
        assert {record["variant"] for record in trials} == {variant}
        assert {record["itemId"].split("::")[1] for record in trials} == {variant}
        assert (len(trials), summary["totals"]["trials"], summary["passed"]) == (4, 4, True)
        assert [item["variant"] for item in summary["evals"]] == [variant]
        assert summary["jsonlPath"] == f"twice-results/{run_dir.name}/{variant}/results.jsonl"
        assert (run_dir / variant / "eval" / "a" / "default-model" / "0" / "metadata.json").exists()
    assert not (run_dir / "results.jsonl").exists()
    assert not (run_dir / ".lock").exists()
    assert result.stdout.splitlines()[-1] == f"Output directory: twice-results/{run_dir.name}"


class Watcher:
    """A reporter of the command."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_run_start(self, event: Any) -> None:
        self.seen.append(("start", (event.kind, sorted(event.variant_dirs))))

    def on_trial_result(self, event: Any) -> None:
        self.seen.append(("trial", (event.item.item_id, event.result.status)))

    def on_run_complete(self, event: Any) -> None:
        self.seen.append(("complete", (event.summary.totals.trials, event.line)))


def run(root: Path, words: list[str], make: Any) -> CliResult:
    """Run a command whose body is `make(context, choices, specs, project, host)`."""

    @click.command("mine", cls=RunCommand)
    @run_options("eval-spec", "param", "workers", "output", "max-tokens-total", "fail-fast", "seed")
    @plugin_options
    @display_options
    @click.pass_obj
    def command(context: CliContext, /, **options: Any) -> int:
        choices = RunChoices.of(options, reporter_flags(context, options))
        selection = SpecSelection(context, SelectionWords(specs=options["specs"]), params=dict(options["params"]))
        project = selection.find_project()
        host = selection.open_host()
        assert host is not None
        specs = selection.load(host)
        assert specs is not None
        code: int = make(context, choices, specs, project, host)
        return code

    record = CommandSpec(name="mine", summary="a command", factory=lambda: command)
    plugins = [record, ScriptedExecutor(["hello"]).record("script")]
    return run_cli(["mine", "-e", "eval.yaml", *words], cwd=root, plugins=plugins)


def options_of(context: CliContext, project: Any) -> PlanOptions:
    return PlanOptions(run_id="the-run", project_root=project.root, work_dir=context.cwd)


def test_an_experiment_has_what_its_records_need(tmp_path: Path) -> None:
    write_spec(tmp_path, ["a"], executor="script")
    watcher = Watcher()

    def make(context: Any, choices: Any, specs: Any, project: Any, host: Any) -> int:
        entries = [
            PlanEntry(spec=spec, variant=name, part=name, experiment={"name": "x", "variant": name, "evalHash": "0"})
            for name in ("off", "on")
            for spec in specs
        ]
        plan = make_plan(entries, options_of(context, project))
        session = RunSession(
            context,
            choices,
            plan=plan,
            project=project,
            host=host,
            kind="experiment",
            output_dir=context.cwd / "out",
            options={"workers": 2, "params": ()},
            reporters=[watcher],
        )
        assert session.prepare()
        layout = RunLayout(parent=context.cwd / "out", name="the-run/shard-1-of-2", parts=("never",))
        outcome = session.run(layout, on_directory=lambda output: (output.path / "plan.json").write_text("{}"))
        assert outcome.summary.totals.trials == 2
        return session.finish(outcome, document=lambda code: {"exitCode": code})

    result = run(tmp_path, ["--output", "json"], make)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {"exitCode": 0}
    run_dir = tmp_path / "out" / "the-run" / "shard-1-of-2"
    record = lines(run_dir / "on" / "results.jsonl")[0]
    assert record["experiment"] == {"name": "x", "variant": "on", "evalHash": "0"}
    assert record["shardKey"] == record["itemId"] == "eval.yaml::on::default-model::a::trial-0"
    assert (run_dir / "never" / "results.jsonl").read_bytes() == b""
    assert (run_dir / "plan.json").exists()
    manifest = json.loads((run_dir / "run-manifest.json").read_text())
    assert (manifest["kind"], manifest["runId"]) == ("experiment", "the-run")
    assert watcher.seen[0] == ("start", ("experiment", ["never", "off", "on"]))
    assert {kind for kind, _ in watcher.seen[1:3]} == {"trial"}
    assert watcher.seen[-1] == ("complete", (2, b""))
    again = run(tmp_path, [], make)
    assert again.exit_code == 1
    assert "it exists and is not empty" in again.stderr


def test_a_run_without_records(tmp_path: Path) -> None:
    write_spec(tmp_path, [{"name": "a", "prompt": "a", "graders": [SAYS_HELLO]}], executor="script")
    watcher, executor = Watcher(), ScriptedExecutor(["hello there"])

    def make(context: Any, choices: Any, specs: Any, project: Any, host: Any) -> int:
        plan = make_plan(
            specs,
            PlanOptions(run_id="the-run", project_root=project.root, work_dir=context.cwd, executor="of-the-command"),
        )
        assert plan.evals[0].executor == ExecutorChoice(name="of-the-command")
        record = ExecutorSpec(name="of-the-command", summary="s", factory=lambda: executor, capabilities=Capabilities())
        session = RunSession(
            context,
            choices,
            plan=plan,
            project=project,
            host=host,
            output_dir=context.cwd,
            executors={"of-the-command": ReadyExecutor(record, executor)},
            reporters=[watcher],
        )
        assert session.prepare()
        outcome = session.run()
        return session.exit_code(outcome)

    result = run(tmp_path, [], make)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert [kind for kind, _ in watcher.seen] == ["start", "trial", "complete"]
    assert len(executor.options) == executor.shutdowns == 1
    assert {path.name for path in tmp_path.iterdir()} == {"eval.yaml"}


def test_budgets_count_all_variants_together(tmp_path: Path) -> None:
    write_spec(tmp_path, ["a", "b"], executor="script")

    def make(context: Any, choices: Any, specs: Any, project: Any, host: Any) -> int:
        from vally import Event

        usage = Event(type="token_usage", data={"inputTokens": 60, "outputTokens": 0, "model": "m"})
        spending = ScriptedExecutor([usage, "hello"])
        entries = [PlanEntry(spec=spec, variant=name, part=name) for name in ("off", "on") for spec in specs]
        session = RunSession(
            context,
            choices,
            plan=make_plan(entries, options_of(context, project)),
            project=project,
            host=host,
            output_dir=context.cwd / "out",
            executors={"script": ReadyExecutor(spending.record("script"), spending)},
        )
        assert session.prepare()
        outcome = session.run(RunLayout(parent=context.cwd / "out"))
        assert (outcome.summary.stop_reason, outcome.summary.totals.skipped) == ("budget-tokens", 2)
        return session.finish(outcome)

    result = run(tmp_path, ["--workers", "1", "--max-tokens-total", "100"], make)
    assert result.exit_code == 1
    assert "PARTIAL (budget-tokens)" in result.stdout


def test_an_option_that_eval_does_not_have() -> None:
    with pytest.raises(KeyError):
        run_options("workres")
