"""Addresses of the web in a text: where they are, and which are never worth a word."""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from vally_command_lint.entry_files import split_address

# Placeholders may stand in the host; they end no address.
_ADDRESS = re.compile(
    r"""https?://
        (?P<authority>(?:[\w.~%:@-]|\[[^\[\]\s]*\]|<[^<>\s]*>|\{+[^{}\s]*\}+|\$\{[^{}\s]*\}|\$\w+|\$\([^()\s]*\))*)
        (?P<rest>(?:[/?\#][^\s"'`<>()\[\]{}|\\^]*)?)""",
    re.IGNORECASE | re.VERBOSE,
)
_PLACEHOLDER = re.compile(r"[<{$\[]|(?:^|[.@])your-")
_TRAILING = ".,;:!?*_~"
_RESERVED_SUFFIXES = (".example", ".test", ".invalid", ".localhost")
_RESERVED = frozenset({"localhost", "example", "test", "invalid"})
_EXAMPLES = ("example.com", "example.org", "example.net", "contoso.com")


@dataclass(frozen=True, slots=True)
class Address:
    """One address; `host` is in lower case without `www.`, `rest` what follows it."""

    text: str
    host: str
    rest: str
    offset: int

    @property
    def is_encrypted(self) -> bool:
        """Whether it is `https`."""
        return self.text[:8].lower() == "https://"


def addresses(text: str) -> Iterator[Address]:
    """Addresses whose host means a real one of the public web."""
    for match in _ADDRESS.finditer(text):
        written = match[0].rstrip(_TRAILING)
        if not match["authority"] or _PLACEHOLDER.search(match["authority"].lower()):
            continue
        try:
            host, rest = split_address(written)
        except ValueError:
            continue
        if host and not is_reserved(host):
            yield Address(written, host, rest, match.start())


def is_reserved(host: str) -> bool:
    """Whether a host is on this machine or network, or an example."""
    if host in _RESERVED or host.endswith(_RESERVED_SUFFIXES):
        return True
    if any(host == name or host.endswith(f".{name}") for name in _EXAMPLES):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified


class Lines:
    """Offsets of a text as positions."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column in code points."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
