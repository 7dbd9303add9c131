"""`vally plugins list` and what other commands do with plugins that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugin_sites import Site, provider, write_files

import vally
from vally.testing import run_cli


@pytest.fixture
def many(site: Site, work: Path) -> Path:
    """A project with an extension in every state; returns the directory to start from."""
    site.distribution("vally", "1.2.0", requires=["vally-grader-files", "vally-executor-main"])
    site.grader("vally-grader-files", "1.2.0", "file-exists", module="files_mod")
    site.grader("acme-graders", "2.0", "file-exists", module="acme_mod")
    executors = {"vally.executors": {"main": "main_mod"}}
    files = {"main_mod.py": provider("main-agent", kind="executor")}
    site.distribution("vally-executor-main", "1.2.0", groups=executors, files=files)
    site.distribution(
        "vally-claude",
        "0.3.1",
        groups={"vally.executors": {"claude-cli": "claude_mod"}},
        files={"claude_mod.py": "import surely_missing\n"},
    )
    site.grader("old-plugin", "1.0", "old", module="old_mod")
    pyproject = (
        '[project]\nname = "old-plugin"\nversion = "1.1"\n[project.entry-points."vally.graders"]\nx = "new_mod"\n'
    )
    write_files(work, {"old/pyproject.toml": pyproject, "old/new_mod.py": provider("renewed")})
    write_files(work, {"plugins/sql_lint.py": provider("sql-lint")})
    write_files(work, {".vally.yaml": "plugins:\n  graders: [./plugins/sql_lint.py, ./old]\n"})
    site.grader("off-plugin", "1.0", "off", module="off_mod", label="off")
    return work


def test_the_table(many: Path) -> None:
    result = run_cli(["plugins", "list", "--no-plugin", "off-plugin"], cwd=many)
    assert result.stdout.splitlines() == [
        "KIND      NAME         VERSION  SOURCE                    STATUS",
        "grader    file-exists  1.2.0    built in                  conflicts with acme-graders 2.0",
        "grader    file-exists  2.0      entry point acme-graders  conflicts with built in",
        "grader    main         1.0      entry point old-plugin    shadowed by ./old",
        "grader    off          1.0      entry point off-plugin    disabled",
        "grader    renewed      1.1      ./old                     ok (.vally.yaml)",
        "grader    sql-lint     –        ./plugins/sql_lint.py     ok (.vally.yaml)",
        "executor  claude-cli   0.3.1    entry point vally-claude  failed: No module named 'surely_missing'",
        "executor  main-agent   1.2.0    built in                  ok",
    ]
    assert (result.exit_code, result.stderr) == (0, "")


def test_json(many: Path) -> None:
    result = run_cli(["plugins", "list", "--kind", "executor", "--output", "json"], cwd=many)
    assert json.loads(result.stdout) == {
        "type": "plugin-list",
        "version": 1,
        "plugins": [
            {
                "kind": "executor",
                "name": "claude-cli",
                "version": "0.3.1",
                "source": "entry point vally-claude",
                "origin": "installed",
                "status": "failed",
                "reason": "No module named 'surely_missing'",
                "description": None,
            },
            {
                "kind": "executor",
                "name": "main-agent",
                "version": "1.2.0",
                "source": "built in",
                "origin": "built-in",
                "status": "ok",
                "reason": None,
                "description": "provides main-agent",
            },
        ],
    }
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize(("kind", "code"), [("executor", 1), ("grader", 0), (None, 1)])
def test_strict(many: Path, kind: str | None, code: int) -> None:
    words = ["plugins", "list", "--strict", *(["--kind", kind] if kind else [])]
    assert run_cli(words, cwd=many).exit_code == code


def test_verbose_shows_paths_descriptions_and_tracebacks(many: Path) -> None:
    result = run_cli(["plugins", "list", "--verbose", "--kind", "executor"], cwd=many)
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "main_mod" in lines
    assert "provides main-agent" in lines
    assert "Traceback (most recent call last):" in lines
    assert "ModuleNotFoundError: No module named 'surely_missing'" in lines


@pytest.mark.parametrize("env", [{}, {"VALLY_DISABLE_PLUGIN_AUTOLOAD": "1"}], ids=["option", "variable"])
def test_third_parties_are_left_out(many: Path, env: dict[str, str]) -> None:
    words = ["plugins", "list", "--kind", "grader"] + ([] if env else ["--no-plugins"])
    result = run_cli(words, cwd=many, env=env)
    states = {tuple(line.split()[1:3]): line.split("  ")[-1].strip() for line in result.stdout.splitlines()[1:]}
    assert states[("file-exists", "1.2.0")] == "ok"
    assert states[("sql-lint", "–")] == "ok (.vally.yaml)"
    assert states[("off", "1.0")] == "disabled"


def test_project_plugins_are_ignored_on_request(many: Path) -> None:
    result = run_cli(["plugins", "list", "--no-project-plugins", "--kind", "grader"], cwd=many)
    assert "sql-lint" not in result.stdout


def test_an_explicit_failure_is_a_row(many: Path) -> None:
    write_files(many, {"x.py": "import sys\nsys.exit(3)\n"})
    words = ["plugins", "list", "--grader-plugin", "./x.py", "--grader-plugin", "./none.py", "--kind", "grader"]
    result = run_cli(words, cwd=many)
    assert "grader  ./x.py" in result.stdout
    assert "failed: SystemExit: 3" in result.stdout
    assert "failed: no entry point, distribution, module or path of that name" in result.stdout
    assert result.exit_code == 0


def test_warnings_about_specifiers_go_to_stderr(many: Path) -> None:
    result = run_cli(["plugins", "list", "--no-plugin", "nope"], cwd=many)
    assert result.stderr == "warning: --no-plugin nope: no installed distribution of that name provides plugins\n"
    assert run_cli(["plugins", "list", "--no-plugin", "nope", "--quiet"], cwd=many).stderr == ""


def test_a_broken_project_file(work: Path, site: Site) -> None:
    write_files(work, {".vally.yaml": "plugins: 3\n"})
    result = run_cli(["plugins", "list"], cwd=work)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: .vally.yaml:1:10: ")
    assert result.stdout == ""


def test_control_characters_of_a_plugin_do_not_reach_the_terminal(site: Site, work: Path) -> None:
    files = {"bad_mod.py": "raise ValueError('\\x1b[31mred')"}
    site.distribution("bad", "1.0", graders={"bad": "bad_mod"}, files=files)
    result = run_cli(["plugins", "list", "--verbose"], cwd=work)
    assert "\x1b" not in result.stdout


def test_version_and_help_load_no_plugin_modules(site: Site, work: Path) -> None:
    text = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n" + provider("x")
    site.distribution("acme", "1.0", graders={"x": "x_mod"}, files={"x_mod.py": text})
    assert run_cli(["--version"], cwd=work).stdout == f"{vally.__version__}\n"
    assert run_cli(["--help"], cwd=work).exit_code == 0
    assert run_cli(["plugins", "--help"], cwd=work).exit_code == 0
    assert not (site.path / "imported").exists()


def test_command_plugins_appear_in_help_without_their_implementation(site: Site, work: Path) -> None:
    text = """\
        from vally import CommandSpec, hookimpl

        @hookimpl
        def vally_commands():
            yield CommandSpec(name="greet", summary="say hello", factory="greet_impl:command")
        """
    implementation = """\
        import click
        import pathlib
        pathlib.Path(__file__).with_name("imported").touch()

        @click.command()
        def greet():
            click.echo("hello")

        def command():
            return greet
        """
    files = {"greet_mod.py": text, "greet_impl.py": implementation}
    site.distribution("greeter", "1.0", groups={"vally.commands": {"greet": "greet_mod"}}, files=files)
    assert "greet    say hello" in run_cli(["--help"], cwd=work).stdout
    assert not (site.path / "imported").exists()
    result = run_cli(["greet"], cwd=work)
    assert (result.stdout, result.stderr) == ("hello\n", "")


def test_a_command_that_is_its_own_factory(site: Site, work: Path) -> None:
    text = """\
        import click
        from vally import CommandSpec

        @click.command()
        def greet():
            click.echo("hello")

        X = CommandSpec(name="greet", summary="say hello", factory=greet)
        """
    site.distribution("greeter", "1.0", groups={"vally.commands": {"greet": "greet_own"}}, files={"greet_own.py": text})
    result = run_cli(["greet"], cwd=work)
    assert result.exit_code == 1
    assert "command 'greet' of greeter 1.0: " in result.stderr
    assert "is a click command, not a function that returns one" in result.stderr
