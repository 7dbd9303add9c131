"""`vally completion`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vally import completion_script
from vally.testing import CliResult, ProjectBuilder, run_cli

Run = Callable[..., CliResult]
SHELLS = ["bash", "zsh", "fish", "powershell"]


@pytest.mark.parametrize("shell", SHELLS)
def test_stdout_holds_the_script_and_nothing_else(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert (result.exit_code, result.stdout, result.stderr) == (0, completion_script(shell), "")
    assert f"{shell}_complete" in result.stdout


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/vally"),
        ("zsh", ".local/share/zsh/site-functions/_vally"),
        ("fish", ".config/fish/completions/vally.fish"),
    ],
)
def test_installed_where_the_shell_looks(run: Run, tmp_path: Path, shell: str, path: str) -> None:
    result = run("completion", shell, "--install", HOME=str(tmp_path))
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / path}\n")
    assert (tmp_path / path).read_text() == completion_script(shell)


def test_powershell_is_told_where_it_is(run: Run, tmp_path: Path) -> None:
    result = run("completion", "powershell", "--install", HOME=str(tmp_path))
    path = Path(result.stdout.strip())
    folder = "Documents/PowerShell" if sys.platform == "win32" else ".config/powershell"
    assert path == tmp_path / folder / "Completions" / "vally.ps1"
    assert path.read_text() == completion_script("powershell")
    assert result.stderr == f"add to $PROFILE: . '{path}'\n"


def test_zsh_is_told_where_it_is(run: Run, tmp_path: Path) -> None:
    result = run("completion", "zsh", "--install", HOME=str(tmp_path))
    folder = tmp_path / ".local/share/zsh/site-functions"
    assert result.stderr == f"add to ~/.zshrc, in front of compinit: fpath+=('{folder}')\n"
    assert run("completion", "zsh", "--install", "--quiet", HOME=str(tmp_path)).stderr == ""


@pytest.mark.parametrize(
    ("shell", "variable", "path"),
    [
        ("bash", "BASH_COMPLETION_USER_DIR", "completions/vally"),
        ("bash", "XDG_DATA_HOME", "bash-completion/completions/vally"),
        ("zsh", "XDG_DATA_HOME", "zsh/site-functions/_vally"),
        ("fish", "XDG_CONFIG_HOME", "fish/completions/vally.fish"),
    ],
)
def test_directories_of_the_user_are_honoured(
    project: ProjectBuilder, tmp_path: Path, shell: str, variable: str, path: str
) -> None:
    words = ["completion", shell, "--install"]
    result = run_cli(words, cwd=project.root, env={"HOME": str(tmp_path / "home"), variable: str(tmp_path / "own")})
    assert result.stdout == f"{tmp_path / 'own' / path}\n"
    assert not (tmp_path / "home").exists()


def test_a_place_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file")
    result = run("completion", "fish", "--install", HOME=str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "cannot write the file: " in result.stderr


def test_an_unknown_shell(run: Run) -> None:
    result = run("completion", "tcsh")
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish', 'powershell'" in result.stderr
