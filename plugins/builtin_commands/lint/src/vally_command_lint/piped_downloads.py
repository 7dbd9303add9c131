"""Downloads that a shell executes at once: `curl … | sh`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DOWNLOAD = re.compile(
    r"(?<![\w./-])(?:curl|wget|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)(?:\.exe)?(?![\w-])", re.IGNORECASE
)
_SHELL = re.compile(
    r"""[\s&]*(?:(?:sudo|env|exec|command|nohup|time)\s+(?:-\S+\s+)*|\w+=\S*\s+)*
        (?:\S*/)?(?:(?:ba|z|da|k|fi)?sh|pwsh|powershell(?:\.exe)?|cmd(?:\.exe)?|iex|Invoke-Expression)(?![\w.:/-])""",
    re.IGNORECASE | re.VERBOSE,
)
_PARTS = re.compile(r"&&|\|\||;")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_CONTINUED = re.compile(r"[\\`][ \t]*(?:\r\n|\r|\n)")
_LINE = re.compile(r"[^\r\n]+")
_CODE_SPAN = re.compile(r"`+([^`]*)`+")
_TRUSTED = re.compile(
    r"https://(?:dot\.net|dotnet\.microsoft\.com|builds\.dotnet\.microsoft\.com|dotnetcli\.azureedge\.net"
    r"|raw\.githubusercontent\.com/dotnet/install-scripts)/[\w./-]*dotnet-install\.(?:sh|ps1)(?![\w.-])",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[^\s\"'`|)]+", re.IGNORECASE)


def piped_downloads(text: str, *, markdown: bool) -> Iterator[tuple[int, str]]:
    """Offsets of download commands that a shell gets, with the pipeline."""
    # A continued line is one command; the replacement keeps every offset.
    joined = _CONTINUED.sub(lambda match: " " * len(match[0]), text)
    for line in _LINE.finditer(joined):
        for start, command in _commands(line, markdown=markdown):
            yield from ((start + offset, shown) for offset, shown in _in_command(command))


def _commands(line: re.Match[str], *, markdown: bool) -> Iterator[tuple[int, str]]:
    """The commands of a line: of a table row only what is code, because its pipes are none."""
    if markdown and line[0].lstrip().startswith("|"):
        for span in _CODE_SPAN.finditer(line[0]):
            yield line.start() + span.start(1), span[1].replace("\\|", " |")
    else:
        yield line.start(), line[0].replace("`", " ") if markdown else line[0]


def _in_command(command: str) -> Iterator[tuple[int, str]]:
    at = 0
    for part in _PARTS.split(command):
        segments = _PIPE.split(part)
        last_shell = max((index for index, segment in enumerate(segments) if _SHELL.match(segment)), default=0)
        offset = 0
        for segment in segments[:last_shell]:
            download = _DOWNLOAD.search(segment)
            if download and not _is_trusted(segment):
                begin = offset + download.start()
                yield at + begin, " ".join(part[begin:].split())
                break
            offset += len(segment) + 1
        at += len(part)
        separator = _PARTS.match(command, at)
        at += len(separator[0]) if separator else 0


def _is_trusted(segment: str) -> bool:
    """Whether all it loads is the installer of .NET from where its makers publish it."""
    found = _ADDRESS.findall(segment)
    return bool(found) and all(_TRUSTED.match(address) for address in found)
