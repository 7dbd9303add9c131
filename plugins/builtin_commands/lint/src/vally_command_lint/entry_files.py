"""Files with one entry a line: known domains and allowed dependencies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from vally import VallyError

T = TypeVar("T")
_HOST = re.compile(r"[^\W_](?:[\w-]*[^\W_])?(?:\.[^\W_](?:[\w-]*[^\W_])?)*(?::\d+)?")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_PREFIXES = ("script:", "invokes:", "tool-ref:")
_UNUSED_PREFIXES = ("agent-tool:", "mcp-server:")


def _entries(path: Path, display: str, parse: Callable[[str], T | None]) -> list[tuple[int, T]]:
    """The entries with their line numbers; raises VallyError with the line of one that `parse` refuses."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise VallyError("not valid UTF-8", where=display) from None
    except OSError as error:
        raise VallyError(f"cannot read {display}: {(error.strerror or str(error)).lower()}") from None
    found = []
    for number, line in enumerate(_LINE_END.split(text), 1):
        entry = line.partition("#")[0].strip() if not _is_tool_reference(line) else _before_comment(line)
        if entry:
            try:
                parsed = parse(entry)
            except ValueError as error:
                raise VallyError(str(error), where=f"{display}:{number}") from None
            if parsed is not None:
                found.append((number, parsed))
    return found


def _is_tool_reference(line: str) -> bool:
    return line.strip().lower().startswith("tool-ref:")


def _before_comment(line: str) -> str:
    """An entry whose own text has a `#`: a comment is what follows a blank and another `#`."""
    return re.split(r"\s#", line.strip(), maxsplit=1)[0].strip()


@dataclass(frozen=True, slots=True)
class Domain:
    """One known domain; `path` is empty, or starts with `/` and limits what is known."""

    host: str
    path: str = ""

    def knows(self, host: str, rest: str) -> bool:
        """Whether an address is known; `rest` is what follows its host."""
        if not self.path:
            return host == self.host or host.endswith(f".{self.host}")
        if host != self.host or not rest.startswith(self.path):
            return False
        return rest[len(self.path) :][:1] in ("", "/", "?", "#")


def read_domains(path: Path, display: str) -> list[Domain]:
    """Domains of a file. Raises VallyError."""
    return [domain for _, domain in _entries(path, display, _domain)]


def _domain(entry: str) -> Domain:
    bare = _SCHEME.sub("", entry, count=1)
    host, slash, rest = bare.rstrip("/").partition("/")
    host = host.lower().removeprefix("www.")
    if not _HOST.fullmatch(host) or re.search(r"\s", rest):
        raise ValueError(f"'{entry}' is not a domain")
    return Domain(host, f"{slash}{rest}")


@dataclass(frozen=True, slots=True)
class Allowed:
    """One allowed dependency, in lower case."""

    key: str
    line: int


def read_allowed(path: Path, display: str) -> list[Allowed]:
    """Entries of an allow file. Raises VallyError."""
    return [Allowed(key, number) for number, key in _entries(path, display, _allowed)]


def _allowed(entry: str) -> str | None:
    key = entry.lower()
    if key.startswith(_UNUSED_PREFIXES):
        return None
    if not key.startswith(_PREFIXES):
        raise ValueError(f"'{entry}' must start with one of {', '.join((*_PREFIXES, *_UNUSED_PREFIXES))}")
    return key


def split_address(address: str) -> tuple[str, str]:
    """The host without `www.`, in lower case, and what follows it."""
    parts = urlsplit(address)
    host = (parts.hostname or "").removeprefix("www.").rstrip(".")
    query = f"?{parts.query}" if parts.query else ""
    return host, f"{parts.path}{query}"
