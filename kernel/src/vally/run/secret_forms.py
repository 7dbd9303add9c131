"""The spellings in which a secret value may turn up in text."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from vally.text.secret_names import MIN_LENGTH

_QUOTATION_MARKS = (
    ('"', "'"),
    ("&quot;", "'"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&#39;"),
    ("&quot;", "&apos;"),
    ("&#34;", "&#39;"),
)
_WRAPPED_LINES = (64, 76)  # widths at which PEM files and `base64` break lines
_WRAPPED_HEX = 60  # that of `xxd -p`
# What bash (`%q`) and other shells put a backslash before, and those that trust no character.
_BACKSLASHED = tuple(map(re.compile, (r"[\t !\"$&'()*,;<>?\[\\\]^`{|}]", r"[^\w@%+=:,./-]", r"\W")))


def secret_forms(value: str) -> frozenset[str]:
    """A value as it is and escaped as in JSON, Python, markup or a shell, percent-encoded, base64-coded or in hex.

    No form spans lines.
    """
    return frozenset(form for form in _forms(value) if len(form) >= MIN_LENGTH)


def _forms(value: str) -> Iterator[str]:
    yield from _lines(value)
    for text in {value, *_lines(value)}:
        yield from _escaped(text)
        yield from _in_markup(text)
        for written in (*_in_python(text), *_in_quotes(text)):
            yield written
            yield json.dumps(written, ensure_ascii=False)[1:-1]
        yield from _backslashed(text)
        yield from _percent_encoded(text)
        coded = text.encode("utf-8", "surrogatepass")
        yield from _base64(coded)
        yield from _hex(coded)


def _lines(value: str) -> list[str]:
    # What spans lines is looked for line by line, because a replacement must not change the number of lines.
    return [line.strip() for line in value.splitlines()]


def _escaped(text: str) -> Iterator[str]:
    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once)[1:-1]


def _in_markup(text: str) -> Iterator[str]:
    needed = text.replace("&", "&amp;").replace("<", "&lt;")
    for escaped in (needed, needed.replace(">", "&gt;")):
        # Of the ways to write quotation marks these are what usual libraries write.
        for double, single in _QUOTATION_MARKS:
            yield escaped.replace('"', double).replace("'", single)


def _in_quotes(text: str) -> Iterator[str]:
    """Inside the quotation marks of a shell."""
    for quoted in ("'\\''", "'\"'\"'"):
        yield text.replace("'", quoted)
    yield re.sub(r'[\\"$`]', r"\\\g<0>", text)


def _backslashed(text: str) -> Iterator[str]:
    """Without quotation marks: as words of a shell, and in patterns."""
    for special in _BACKSLASHED:
        yield special.sub(r"\\\g<0>", text)
    yield re.escape(text)


def _in_python(text: str) -> Iterator[str]:
    """As texts and bytes are shown, in either quotation mark."""
    shown = repr(f"{text}'\"")[1:-1].removesuffix("\\'\"")
    coded = repr(text.encode("utf-8", "surrogatepass") + b"'\"")[2:-1].removesuffix("\\'\"")
    for written in (shown, ascii(f"{text}'\"")[1:-1].removesuffix("\\'\""), coded):
        yield written
        yield written.replace("\\'", "'")


def _percent_encoded(text: str) -> Iterator[str]:
    for encoded in (quote(text, safe=""), quote(text), quote_plus(text), _encode_component(text)):
        yield encoded
        yield _lower_hex(encoded)


def _encode_component(text: str) -> str:
    """As ECMAScript's encodeURIComponent does."""
    return quote(text, safe="!'()*")


def _lower_hex(encoded: str) -> str:
    head, *rest = encoded.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _hex(data: bytes) -> Iterator[str]:
    text = data.hex()
    # A few bytes in hex may be part of any digest.
    if len(data) < MIN_LENGTH:
        return
    yield text
    yield text.upper()
    lines = (text[start : start + _WRAPPED_HEX] for start in range(0, len(text), _WRAPPED_HEX))
    yield from (line for line in lines if len(line) >= 2 * MIN_LENGTH)


def _base64(data: bytes) -> Iterator[str]:
    for text in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        yield text
        yield text.rstrip("=")
        for width in _WRAPPED_LINES:
            if len(text) > width:
                yield from (text[start : start + width] for start in range(0, len(text), width))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            yield _inner_base64(encode(bytes(offset) + data + b"\0\0").decode(), offset, len(data))


def _inner_base64(text: str, offset: int, length: int) -> str:
    """The characters that depend on the value alone when it is coded together with what surrounds it."""
    return text[-(-8 * offset // 6) : 8 * (offset + length) // 6]
