"""How bash, zsh, fish and PowerShell ask for completions, and the scripts that make them ask.

All scripts read lines of three fields between tabs: the type (`plain`, `partial` when more is to be typed, `file`,
`dir`), the value, and a help text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import ClassVar

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from vally.cli.context import CliContext

VARIABLE = "_VALLY_COMPLETE"
_PROGRAM = "vally"
_UNSAFE = re.compile(r"([^\w@%+=:,./~-])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Shell(ShellComplete):
    """One shell; `environ` has what its script handed over."""

    def __init__(self, program: click.Command, context: CliContext) -> None:
        super().__init__(program, {"obj": context}, _PROGRAM, VARIABLE)
        self.environ: Mapping[str, str] = context.environ

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is being typed, without the program, and that word."""
        line = self.environ["COMP_LINE"]
        words = split_arg_string(line)
        typed = "" if not words or _ends_between_words(line) else words.pop()
        start = next((index for index, word in enumerate(words) if PurePath(word).stem == _PROGRAM), 0)
        return words[start + 1 :], typed

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """What may stand there; values of `--option=value` come with the option."""
        found = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if not option.startswith("-") or not equals:
            return found
        return [CompletionItem(f"{option}={item.value}", type=item.type, help=item.help) for item in found]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """One line, with its end."""
        return "\t".join((item.type, self.written(item.value), _CONTROL.sub(" ", item.help or ""))) + "\n"

    def written(self, value: str) -> str:
        """A value as the shell inserts it."""
        return value

    def complete(self) -> str:
        """All lines; values that no line can hold are left out."""
        args, incomplete = self.get_completion_args()
        items = self.get_completions(args, incomplete)
        return "".join(self.format_completion(item) for item in items if not _CONTROL.search(item.value))


class Bash(Shell):
    """Bash replaces only what follows the last word break, and inserts text as it is."""

    name: ClassVar[str] = "bash"

    def written(self, value: str) -> str:
        """Escaped, unless a quote is open, and without what bash takes for earlier words."""
        line = self.environ["COMP_LINE"]
        if _open_quote(line):
            return value
        typed = _last_word(line)
        breaks = set(self.environ.get("COMP_WORDBREAKS", "")) & set("=:")
        kept = max((typed.rfind(mark) for mark in breaks), default=-1) + 1
        return _UNSAFE.sub(r"\\\1", value)[kept:]

    def get_completion_args(self) -> tuple[list[str], str]:
        """The line as far as the cursor."""
        point = self.environ.get("COMP_POINT", "")
        line = self.environ["COMP_LINE"]
        if point.isdecimal():
            # Bash counts bytes.
            line = line.encode()[: int(point)].decode("utf-8", "ignore")
        self.environ = {**self.environ, "COMP_LINE": line}
        return super().get_completion_args()


class Zsh(Shell):
    """Zsh quotes by itself."""

    name: ClassVar[str] = "zsh"


class Fish(Shell):
    """Fish quotes by itself."""

    name: ClassVar[str] = "fish"


class PowerShell(Shell):
    """PowerShell has parsed the words: one per line, and the one being typed apart."""

    name: ClassVar[str] = "powershell"

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words in front of the cursor; a quote that was just opened is none of them."""
        words = self.environ.get("COMP_WORDS", "").split("\n")
        return words[1:], self.environ.get("COMP_WORD", "").lstrip("'\"")

    def written(self, value: str) -> str:
        """In quotes when it must be."""
        return value if re.fullmatch(r"[\w./:=+-]+", value) else "'" + value.replace("'", "''") + "'"


SHELLS: Mapping[str, type[Shell]] = MappingProxyType({shell.name: shell for shell in (Bash, Zsh, Fish, PowerShell)})


def completion_script(shell: str) -> str:
    """The script that makes a shell (`bash`, `zsh`, `fish`, `powershell`) complete this program."""
    name = SHELLS[shell].name
    return (files("vally.cli") / "completion_scripts" / f"{name}.txt").read_text(encoding="utf-8")


def _ends_between_words(line: str) -> bool:
    return not line or (line[-1] in " \t\n" and not _open_quote(line) and not line[:-1].endswith("\\"))


def _open_quote(line: str) -> str:
    """The quote that is open at the end of a line, or nothing."""
    quote, escaped = "", False
    for character in line:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
    return quote


def _last_word(line: str) -> str:
    """The word at the end of a line as it is written."""
    found = re.search(r"(?:[^\s\\]|\\.)*$", line)
    return found[0] if found else ""
