"""`vally completion`: scripts that make shells complete the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from vally import CliContext, completion_script, display_options, write_machine_output

SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--install", is_flag=True, help="Write the script to the shell's completion directory of the user.")
@display_options
@click.pass_obj
def _command(context: CliContext, /, shell: str, install: bool) -> int:
    """Print the completion script of a shell, or install it and print its path.

    It completes commands, options and choices, and names of suites, tags, stimuli, variants, runs and plugins.
    """
    script = completion_script(shell)
    if not install:
        write_machine_output(script)
        return 0
    from vally_command_scaffold.files import write

    path = script_path(shell, context.environ)
    write(context, path, script)
    click.echo(str(path))
    note = _note(shell, path)
    if note and not context.display.quiet:
        click.echo(note, err=True)
    return 0


def completion_command() -> click.Command:
    """The command, for the record."""
    return _command


def script_path(shell: str, environ: Mapping[str, str]) -> Path:
    """Where the shell of the user looks for completions, or where a line of its start-up file can find them."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if shell == "bash":
        own = environ.get("BASH_COMPLETION_USER_DIR", "").partition(":")[0]
        return (Path(own) if own else data / "bash-completion") / "completions" / "vally"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_vally"
    if shell == "fish":
        return config / "fish" / "completions" / "vally.fish"
    documents = home / "Documents" / "PowerShell" if sys.platform == "win32" else config / "powershell"
    return documents / "Completions" / "vally.ps1"


def _note(shell: str, path: Path) -> str:
    """What a user still has to do, if the shell does not look there by itself."""
    if shell == "zsh":
        return f"add to ~/.zshrc, in front of compinit: fpath+=('{path.parent}')"
    return f"add to $PROFILE: . '{path}'" if shell == "powershell" else ""
