"""Whether a tool call only reads, told from the name of the tool and the command it was given."""

from __future__ import annotations

import re

from vally import ToolCall

_NAMESPACE = re.compile(r".*(?:/|\.|:|__)", re.DOTALL)
_EDITOR = re.compile(r"str_replace_editor|str_replace_based_edit_tool")
_SHELL = re.compile(r"bash|sh|zsh|shell|powershell|pwsh|cmd|terminal|run_in_terminal")
_READING_NAME = re.compile(
    r"view|read|get|list|ls|cat|grep|rg|glob|search|find|show|describe|fetch|query|web_search|web_fetch|report_intent"
)

_HARMLESS_REDIRECTION = re.compile(r"2>&1|2?>/dev/null(?![\w./-])")
_WRITING = re.compile(r">|`|\$\(|<\(")
_SEPARATOR = re.compile(r"&&|\|\||[;|&\r\n]")
_READING_PART = re.compile(
    r"(?:cat|head|tail|ls|dir|pwd|cd|echo|grep|rg|egrep|fgrep|find|wc|sort|cut|diff|stat|file|which|type|tree|du|df"
    r"|printenv|whoami|test|true|Get-Content|Get-ChildItem|Select-String"
    r"|git (?:status|diff|log|show|ls-files|blame|rev-parse))(?: |$)"
)
_WRITING_OPTION = {
    "find": re.compile(r"-(?:delete|exec|ok)"),
    "sort": re.compile(r"-[A-Za-z]*o|--o"),
    "tree": re.compile(r"-[A-Za-z]*o|--o"),
    "git": re.compile(r"--output"),
}
_QUOTES = str.maketrans("", "", "'\"\\")


def is_read_only(call: ToolCall) -> bool:
    """Whether the call cannot have changed anything, as far as can be told."""
    recorded = call.event.data.get("readOnly")
    if isinstance(recorded, bool):
        return recorded
    base = _NAMESPACE.sub("", call.name)
    if _EDITOR.fullmatch(base.lower()):
        return _command(call) == "view"
    if _SHELL.fullmatch(base.lower()):
        return _is_reading_command(_command(call))
    found = _READING_NAME.match(base.lower())
    return found is not None and _ends_word(base[found.end() :])


def _command(call: ToolCall) -> str:
    command = call.arguments.get("command") if isinstance(call.arguments, dict) else None
    return command if isinstance(command, str) else ""


def _ends_word(rest: str) -> bool:
    return not rest or rest[0] in "_-" or rest[0].isupper()


def _is_reading_command(command: str) -> bool:
    rest = _HARMLESS_REDIRECTION.sub("", command)
    parts = [words for part in _SEPARATOR.split(rest) if (words := part.split())]
    return bool(parts) and not _WRITING.search(rest) and all(_is_reading_part(words) for words in parts)


def _is_reading_part(words: list[str]) -> bool:
    option = _WRITING_OPTION.get(words[0])
    writes = option is not None and any(option.match(word.translate(_QUOTES)) for word in words)
    return _READING_PART.match(" ".join(words)) is not None and not writes
