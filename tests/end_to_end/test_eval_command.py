"""`vally eval` as its users type it: selection, exit codes, machine output and what is left on disk."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vally.testing import CliResult, run_cli

HELLO = {"type": "output-contains", "config": {"substring": "hello"}}
NEVER = {"type": "output-contains", "config": {"substring": "never said"}}


def stimulus(name: str, *graders: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    return {"name": name, "prompt": "hello", "graders": list(graders or (HELLO,)), **keys}


def write(root: Path, name: str, *stimuli: Mapping[str, Any], **keys: Any) -> None:
    spec = {"name": Path(name).stem, "defaults": {"executor": "mock"}, "stimuli": list(stimuli), **keys}
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(spec))


def vally(root: Path, *args: str, **kwargs: Any) -> CliResult:
    return run_cli(["eval", *args], cwd=root, **kwargs)


def trials(result: CliResult) -> list[dict[str, Any]]:
    return [record for record in result.records if record["type"] == "trial-result"]


def stimuli_of(result: CliResult) -> list[str]:
    return sorted(record["stimulus"] for record in trials(result))


def test_machine_output_is_the_results_file_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"))
    result = vally(tmp_path, "-e", "a.yaml", "--output", "jsonl", "--output-dir", "out", "--junit")
    assert result.exit_code == 0
    (directory,) = (tmp_path / "out").iterdir()
    assert result.stdout == (directory / "results.jsonl").read_text()
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["trial-result", "run-summary"]
    assert (directory / "eval-results.junit.xml").exists()
    assert f"Output directory: out/{directory.name}" in result.stderr


def test_json_output_writes_whole_numbers_as_records_do(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"), stimulus("t", NEVER), scoring={"threshold": 1.0})
    printed = [
        vally(tmp_path, "-e", "a.yaml", "--output", "json"),
        vally(tmp_path, "-e", "a.yaml", "--dry-run", "--output", "json"),
        run_cli(["runs", "--output", "json"], cwd=tmp_path),
    ]
    (results,) = tmp_path.glob("vally-results/*/results.jsonl")
    printed.append(run_cli(["grade", "-e", "a.yaml", str(results), "--output", "json"], cwd=tmp_path))
    for result in printed:
        assert json.loads(result.stdout)
        assert not re.search(r"\d\.0\b", result.stdout)


def test_json_output_is_one_object(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"), stimulus("t", NEVER))
    result = vally(tmp_path, "-e", "a.yaml", "--output", "json", "--require-pass")
    found = json.loads(result.stdout)
    assert (found["type"], found["exitCode"], found["passed"]) == ("eval-run", 1, False)
    assert result.exit_code == 1
    verdicts = {item["name"]: item["verdict"] for item in found["evals"][0]["stimuli"]}
    assert verdicts == {"s": "pass", "t": "fail"}
    assert set(found["artifacts"]) >= {"jsonl", "markdown"}


@pytest.mark.parametrize(
    ("graders", "fixture", "plain", "required"),
    [
        ([HELLO], {}, 0, 0),
        ([NEVER], {}, 0, 1),
        ([HELLO], {"error": {"message": "down", "code": "provider-error"}}, 1, 1),
    ],
    ids=["passing", "failing", "errored"],
)
def test_exit_codes(tmp_path: Path, graders: list[Any], fixture: dict[str, Any], plain: int, required: int) -> None:
    (tmp_path / "fixtures").mkdir()
    if fixture:
        (tmp_path / "fixtures" / "s.json").write_text(json.dumps(fixture))
    executor = {"name": "mock", "config": {"fixtureDir": "fixtures"}}
    write(tmp_path, "a.yaml", stimulus("s", *graders), defaults={"executor": executor})
    assert vally(tmp_path, "-e", "a.yaml").exit_code == plain
    assert vally(tmp_path, "-e", "a.yaml", "--require-pass").exit_code == required


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ([], 2, "nothing selected"),
        (["--tag", "area"], 2, "is not of the form key=v1,v2"),
        (["--suite", "smok"], 1, "did you mean 'smoke'?"),
        (["-e", "nope.yaml"], 1, "cannot read nope.yaml"),
        (["-e", "evals/a.yaml", "--executor", "mok"], 1, "did you mean 'mock'?"),
        (["-e", "evals/a.yaml", "--backend", "loca"], 1, "did you mean 'local'?"),
        (["-e", "evals/a.yaml", "--stimulus", "zz"], 1, "no stimulus matches"),
        (["-e", "evals/a.yaml", "--in-place"], 2, "--in-place needs --workspace"),
        (["-e", "evals/a.yaml", "--skip-grade", "--require-pass"], 2, "cannot be combined with --skip-grade"),
        (["-e", "evals/a.yaml", "--backend-args", "a=b"], 2, "--backend-args needs --backend"),
        (
            ["-e", "evals/a.yaml", "--backend", "local", "--backend-args", "disk-limt=1g"],
            2,
            "did you mean 'disk-limit'?",
        ),
        (["-e", "evals/a.yaml", "--backend", "local", "--backend-args", "x=1g"], 2, "arguments: disk-limit, min-free"),
        (
            ["-e", "evals/a.yaml", "--backend", "local", "--backend-args", "min-free=x"],
            2,
            "'min-free': a size such as '512m'",
        ),
        (
            ["-e", "evals/a.yaml", "--backend", "local", *("--backend-args", "min-free=1g") * 2],
            2,
            "--backend-args: backend 'local': 'min-free' takes one value and was given twice",
        ),
        (
            ["-e", "evals/a.yaml", "--backend", "local", *("--backend-args", "min-free=x") * 3],
            2,
            "'min-free' takes one value and was given 3 times\n  leave one value of 'min-free'",
        ),
        (["-e", "evals/a.yaml", "--timeout", "30"], 2, "is not a duration"),
        (["-e", "evals/a.yaml", "--run-id", "a b"], 2, "--run-id"),
        (["-e", "evals/a.yaml", "--skill-dir", "none"], 1, "'none' does not exist"),
        (["-e", "evals/a.yaml", "--quiet", "--verbose"], 2, "exclude each other"),
        (["do it"], 2, "--eval-spec"),
    ],
)
def test_what_cannot_run_says_why_and_leaves_nothing(tmp_path: Path, args: list[str], code: int, text: str) -> None:
    write(tmp_path, "evals/a.yaml", stimulus("s"))
    (tmp_path / ".vally.yaml").write_text("suites: {smoke: {filter: {tier: smoke}}}\n")
    result = vally(tmp_path, *args)
    assert result.exit_code == code
    assert text in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "vally-results").exists()


@pytest.mark.parametrize(
    ("args", "words", "told"),
    [
        (
            "{disk-limt: 1g}",
            [],
            ".vally.yaml:3:21: backend 'local': unknown key 'disk-limt'\n  did you mean 'disk-limit'?",
        ),
        ("{disk-limit: 1g, min-free: lots}", [], ".vally.yaml:3:36: backend 'local': 'min-free': a size such as"),
        ("{min-free: 1g}", ["--backend-args", "min-free=lots"], "--backend-args: backend 'local': 'min-free': a size"),
        ("{min-free: [1g, 2g]}", [], ".vally.yaml:3:20: backend 'local': 'min-free' takes one value, not a list"),
    ],
)
def test_arguments_of_a_backend_are_told_where_they_stand(
    tmp_path: Path, args: str, words: list[str], told: str
) -> None:
    write(tmp_path, "evals/a.yaml", stimulus("s"))
    (tmp_path / ".vally.yaml").write_text(f"backend:\n  name: local\n  args: {args}\n")
    result = vally(tmp_path, "-e", "evals/a.yaml", *words)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(
    ("backend", "told"), [("lokal", ".vally.yaml:2:10: plugin 'lokal'"), ("{name: lokal}", ".vally.yaml:2:17: plugin")]
)
def test_a_backend_that_does_not_exist_is_told_where_it_stands(tmp_path: Path, backend: str, told: str) -> None:
    write(tmp_path, "evals/a.yaml", stimulus("s"))
    (tmp_path / ".vally.yaml").write_text(f"suites: {{}}\nbackend: {backend}\n")
    result = vally(tmp_path, "-e", "evals/a.yaml")
    assert result.exit_code == 1
    assert told in result.stderr
    assert "did you mean 'local'?" in result.stderr


def test_selections_intersect(tmp_path: Path) -> None:
    (tmp_path / ".vally.yaml").write_text("suites: {smoke: {filter: {tier: smoke}}, all: {evals: [evals]}}\n")
    write(
        tmp_path,
        "evals/one/eval.yaml",
        stimulus("a", tags={"tier": "smoke", "area": "x"}),
        stimulus("b", tags={"tier": ["smoke", "full"]}),
        stimulus("c", tags={"tier": "full", "area": "x"}),
        tags={"team": "t1"},
    )
    write(tmp_path, "evals/two/eval.yaml", stimulus("d", tags={"tier": "smoke"}))
    assert stimuli_of(vally(tmp_path, "--suite", "smoke")) == ["a", "b", "d"]
    assert stimuli_of(vally(tmp_path, "--suite", "all", "--tag", "team=t1")) == ["a", "b", "c"]
    assert stimuli_of(vally(tmp_path, "--suite", "smoke", "--tag", "area=x,y")) == ["a"]
    assert stimuli_of(vally(tmp_path, "-e", "evals/one/eval.yaml", "--suite", "smoke", "--stimulus", "!b")) == ["a"]
    assert stimuli_of(vally(tmp_path, "-e", "evals", "--stimulus", "eval::*", "--filter", "!c")) == ["a", "b", "d"]


def test_every_model_and_trial_has_its_own_record(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"), stimulus("t"))
    result = vally(tmp_path, "-e", "a.yaml", "--model", "m1, m2,m1", "--runs", "2", "--workers", "3")
    items = {record["itemId"] for record in trials(result)}
    assert items == {
        f"a.yaml::main::{model}::{name}::trial-{trial}" for model in ("m1", "m2") for name in "st" for trial in (0, 1)
    }
    assert [item["model"] for item in result.records[-1]["evals"]] == ["m1", "m2"]


def test_a_threshold_of_the_command_line_beats_the_spec(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s", HELLO, NEVER), scoring={"threshold": 0.9})
    assert vally(tmp_path, "-e", "a.yaml", "--require-pass").exit_code == 1
    result = vally(tmp_path, "-e", "a.yaml", "--require-pass", "--threshold", "0.5")
    assert result.exit_code == 0
    assert result.records[-1]["evals"][0]["reason"] == "score 0.50 >= 0.50"


def test_fail_fast_starts_no_trial_after_the_first_that_fails(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s", NEVER), *(stimulus(f"t{number}") for number in range(5)))
    result = vally(tmp_path, "-e", "a.yaml", "--fail-fast", "--workers", "1")
    assert result.exit_code == 1
    statuses = [(record["status"], record.get("skipReason")) for record in trials(result)]
    assert statuses == [("success", None), *[("skipped", "fail-fast")] * 5]
    summary = result.records[-1]
    assert (summary["partial"], summary["stopReason"]) == (True, "fail-fast")


def test_a_plan_of_zero_runs_is_validated_only(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"))
    result = vally(tmp_path, "-e", "a.yaml", "--runs", "0")
    assert (result.exit_code, result.run_dir) == (0, None)
    assert "skipped (runs: 0)" in result.stderr


def test_a_dry_run_prints_the_plan_and_runs_nothing(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"))
    text = vally(tmp_path, "-e", "a.yaml", "--dry-run", "--runs", "3")
    assert text.stdout.startswith("Plan: 1 eval, 3 items\n")
    plan = json.loads(vally(tmp_path, "-e", "a.yaml", "--dry-run", "--output", "json").stdout)
    assert (plan["type"], plan["items"]) == ("eval-plan", ["a.yaml::main::default-model::s::trial-0"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml"]


def test_all_errors_of_all_specs_are_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s", {"type": "file-exist", "config": {"path": "x"}}))
    write(tmp_path, "b.yaml", {"name": "s", "graders": [HELLO]})
    result = vally(tmp_path, "-e", "a.yaml", "-e", "b.yaml")
    assert result.exit_code == 1
    assert "did you mean 'file-exists'?" in result.stderr
    assert "[missing-prompt]" in result.stderr


def test_what_an_executor_cannot_do_is_refused_before_the_run(tmp_path: Path) -> None:
    command = {"name": "command", "config": {"command": ["cat"]}}
    write(
        tmp_path,
        "a.yaml",
        {"name": "s", "turns": ["one", "two"], "graders": [HELLO]},
        stimulus("t", environment={"mcpServers": {"m": {"type": "stdio", "command": "cat"}}}),
        defaults={"executor": command},
    )
    result = vally(tmp_path, "-e", "a.yaml")
    assert result.exit_code == 1
    assert "executor 'command' does not support more than one turn (stimulus 's')" in result.stderr
    assert "executor 'command' does not support MCP servers (stimulus 't')" in result.stderr
    assert result.run_dir is None


SKILL = "---\nname: log-reader\ndescription: Reads logs.\n---\n"
ASKS = {
    "skills": ({"environment": {"skills": ["log-reader"]}}, "skillsDir", ".agents/skills"),
    "mcp": ({"environment": {"mcpServers": {"m": {"type": "stdio", "command": "cat"}}}}, "command", "{mcp_config}"),
    "turns": ({"prompt": None, "turns": ["one", "two"]}, "continueCommand", ["cat"]),
    "effort": ({}, "command", "{reasoning_effort}"),
}


@pytest.mark.parametrize("case", ASKS)
def test_what_the_config_must_have_for_it_is_told_and_suffices(tmp_path: Path, case: str) -> None:
    needs, key, value = ASKS[case]
    (tmp_path / "log-reader").mkdir()
    (tmp_path / "log-reader" / "SKILL.md").write_text(SKILL)
    entry = {name: item for name, item in {**stimulus("s"), **needs}.items() if item is not None}
    defaults = {"reasoning_effort": "high"} if case == "effort" else {}

    def planned(config: dict[str, Any]) -> CliResult:
        executor = {"name": "command", "config": config}
        write(tmp_path, "a.yaml", entry, defaults={**defaults, "executor": executor})
        return vally(tmp_path, "-e", "a.yaml", "--dry-run")

    refused = planned({"command": ["cat"]})
    assert refused.exit_code == 1
    told = f"'{value}' in 'command'" if key == "command" else f"'{key}'"
    assert f"[unsupported-option]\n  its config must have {told}\n" in refused.stderr
    config = {"command": ["cat", value]} if key == "command" else {"command": ["cat"], key: value}
    assert planned(config).exit_code == 0


def test_a_seed_gives_every_trial_its_own_and_repeats_itself(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"), stimulus("t"))
    first, again, other = (
        {record["itemId"]: record["seed"] for record in trials(vally(tmp_path, "-e", "a.yaml", "--seed", seed))}
        for seed in ("7", "7", "8")
    )
    assert first == again != other
    assert len(set(first.values())) == 2


def test_workspaces_are_kept_where_asked(tmp_path: Path) -> None:
    agent = {"name": "command", "config": {"command": ["sh", "-c", "echo done > made.txt; echo hello"]}}
    write(tmp_path, "a.yaml", stimulus("s"), defaults={"executor": agent})
    result = vally(tmp_path, "-e", "a.yaml", "--workspace", "kept")
    assert (tmp_path / "kept" / "s" / "made.txt").read_text() == "done\n"
    assert trials(result)[0]["workspacePath"] == str(tmp_path / "kept" / "s")
    several = vally(tmp_path, "-e", "a.yaml", "--workspace", "more", "--runs", "2", "--model", "m1,m2")
    assert several.exit_code == 0
    made = sorted(path.relative_to(tmp_path / "more").as_posix() for path in (tmp_path / "more").rglob("made.txt"))
    assert made == ["s/m1/trial-0/made.txt", "s/m1/trial-1/made.txt", "s/m2/trial-0/made.txt", "s/m2/trial-1/made.txt"]


def test_in_place_works_in_the_directory_itself(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.example", *words], cwd=checkout, check=True)
    agent = {"name": "command", "config": {"command": ["sh", "-c", "echo done > made.txt; echo hello"]}}
    diff = {"type": "diff-contains", "config": {"value": "+done"}}
    write(tmp_path, "a.yaml", stimulus("s", diff), defaults={"executor": agent})
    result = vally(tmp_path, "-e", "a.yaml", "--workspace", "checkout", "--in-place", "--require-pass")
    assert (result.exit_code, (checkout / "made.txt").read_text()) == (0, "done\n")


def test_secrets_reach_no_file_of_the_run(tmp_path: Path) -> None:
    secret = "abcdefghijklmnop"
    agent = {
        "name": "command",
        "config": {"command": ["sh", "-c", "echo hello $API_TOKEN | tee leak.txt"], "passEnv": ["API_TOKEN"]},
    }
    diff = {"type": "diff-contains", "config": {"value": "hello"}}
    write(tmp_path, "a.yaml", stimulus("s", HELLO, diff), defaults={"executor": agent})
    result = vally(tmp_path, "-e", "a.yaml", "--param", f"MY_TOKEN={secret}x", env={"API_TOKEN": secret})
    assert result.run_dir is not None
    assert trials(result)[0]["trajectory"]["output"].strip() == "hello <redacted:API_TOKEN>"
    for path in result.run_dir.rglob("*"):
        assert not path.is_file() or secret not in path.read_text(), path
    assert secret not in result.stdout + result.stderr


def test_a_secret_inside_a_name_is_gone_everywhere(tmp_path: Path) -> None:
    secret = "abcdefghijklmnop"
    write(tmp_path, "a.yaml", stimulus(f"s {secret}", NEVER), stimulus("t"))
    spec = json.loads((tmp_path / "a.yaml").read_text())
    (tmp_path / "a.yaml").write_text(json.dumps({**spec, "name": f"eval {secret}"}))
    result = vally(tmp_path, "-e", "a.yaml", "--junit", env={"API_TOKEN": secret})
    assert stimuli_of(result) == ["s <redacted:API_TOKEN>", "t"]
    assert result.run_dir is not None
    for path in result.run_dir.rglob("*"):
        assert secret not in path.as_posix()
        assert not path.is_file() or secret not in path.read_text(), path
    assert secret not in result.stdout + result.stderr
    manifest = json.loads((result.run_dir / "run-manifest.json").read_text())
    assert sorted(manifest["items"]) == sorted(record["itemId"] for record in trials(result))
    assert 'tests="2"' in (result.run_dir / "eval-results.junit.xml").read_text()


def test_two_runs_at_once_get_directories_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"))
    names = {vally(tmp_path, "-e", "a.yaml", "--output-dir", "out").run_dir for _ in range(3)}
    assert len(names) == 3
    assert all(path is not None and not (path / ".lock").exists() for path in names)


def test_a_run_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", stimulus("s"))
    (tmp_path / "out").write_text("a file")
    result = vally(tmp_path, "-e", "a.yaml", "--output-dir", "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
