"""Secrets are replaced in everything that is written down or printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from vally.run.secret_forms import secret_forms
from vally.text.secret_names import is_secret_name, is_secret_value

REDACTED = "<redacted>"

_MARKER = r"<redacted:[A-Za-z0-9_.-]*>"
_PATTERNS = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|\bgh[pousr]_[A-Za-z0-9]{10,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{10,}"
    r"|\bsk-[A-Za-z0-9_-]{17,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"
    r"|(?P<bearer>\b[Bb][Ee][Aa][Rr][Ee][Rr][ \t]+)[A-Za-z0-9._~+/-]{8,}=*"
    r"|(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/?#\"'<>]{1,1000}@"
)
_BINARY_PATCH = re.compile(rb"^GIT binary patch\n(?:(?:literal|delta) [0-9]+\n(?:[^\n]+\n)*\n?)+", re.MULTILINE)


def redact_environment_maps(document: Any) -> Any:
    """A copy of (a part of) a spec in which the values of all `env` and `headers` maps are `<redacted>`."""
    if isinstance(document, Mapping):
        return {
            key: dict.fromkeys(value, REDACTED)
            if key in ("env", "headers") and isinstance(value, Mapping)
            else redact_environment_maps(value)
            for key, value in document.items()
        }
    if isinstance(document, (list, tuple)):
        return [redact_environment_maps(item) for item in document]
    return document


def redact_patterns(text: str) -> str:
    """Replace what looks like a credential: known token shapes, bearer values, URL user information, private keys."""
    return _PATTERNS.sub(_pattern_marker, text)


def _pattern_marker(match: re.Match[str]) -> str:
    if match["scheme"]:
        return f"{match['scheme']}{REDACTED}@"
    return (match["bearer"] or "") + REDACTED


class Redactor:
    """Replaces known secret values by `<redacted:NAME>`.

    It knows the variables of `environ` whose name is that of a secret, those named in `variables` whatever they are
    called, and the `parameters` (of `--param` and `--backend-args`) whose name is that of a secret. Values must have
    at least 8 characters and not be plain words.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        variables: Iterable[str] = (),
        parameters: Mapping[str, str | Iterable[str]] | None = None,
    ) -> None:
        self._names: dict[str, str] = {}
        self._patterns: dict[tuple[str, ...], re.Pattern[str]] = {}
        named = set(variables)
        for name, value in (environ or {}).items():
            if name in named or is_secret_name(name):
                self.add(name, value)
        for name, values in (parameters or {}).items():
            if is_secret_name(name):
                for value in [values] if isinstance(values, str) else values:
                    self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Learn one more value; of two names for one value the first stays."""
        if not is_secret_value(value):
            return
        marker = f"<redacted:{re.sub('[^A-Za-z0-9_.-]', '_', name)}>"
        for form in secret_forms(value):
            self._names.setdefault(form, marker)

    def text(self, text: str) -> str:
        """The text without known values."""
        return self.count(text)[0]

    def count(self, text: str) -> tuple[str, int]:
        """The text without known values, and the number of replacements."""
        present = self._present(text)
        return self._replaced(text, self._pattern(present)) if present else (text, 0)

    def console(self, text: str) -> str:
        """Text for people (console, log lines, errors, diagnostics): without known values and credential shapes."""
        return redact_patterns(self.text(text))

    def value(self, value: Any) -> Any:
        """A JSON value without known values in its keys and texts: a deep copy, or itself when it has none."""
        return self.count_value(value)[0]

    def count_value(self, value: Any) -> tuple[Any, int]:
        """A value without known values as from `value`, and the number of replacements."""
        present = self._present("\n".join(_texts(value))) if self._names else ()
        if not present:
            return value, 0
        pattern = self._pattern(present)
        total = 0

        def replaced(text: str) -> str:
            nonlocal total
            text, count = self._replaced(text, pattern)
            total += count
            return text

        copy = _mapped(value, replaced)
        return copy, total

    def patch(self, patch: bytes) -> bytes:
        """A patch of git without known values in its text; binary parts and all other bytes stay as they are."""
        pieces: list[bytes] = []
        end = 0
        for binary in _BINARY_PATCH.finditer(patch):
            pieces += [self._bytes(patch[end : binary.start()]), binary[0]]
            end = binary.end()
        return b"".join([*pieces, self._bytes(patch[end:])])

    def _bytes(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _present(self, text: str) -> tuple[str, ...]:
        # Plain searches are much faster than an alternation of all forms, and most texts hold none of them.
        return tuple(form for form in self._names if form in text)

    def _pattern(self, forms: tuple[str, ...]) -> re.Pattern[str]:
        pattern = self._patterns.get(forms)
        if pattern is None:
            longest_first = sorted(forms, key=lambda form: (-len(form), form))
            pattern = re.compile("|".join([_MARKER, *map(re.escape, longest_first)]))
            self._patterns[forms] = pattern
        return pattern

    def _replaced(self, text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
        count = 0

        def marker(match: re.Match[str]) -> str:
            nonlocal count
            found = self._names.get(match[0])
            if found is None:
                return match[0]  # a marker of an earlier pass
            count += 1
            return found

        return pattern.sub(marker, text), count


def _texts(value: Any) -> list[str]:
    texts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is str:
            texts.append(item)
        elif kind is dict:
            pending.extend(item.values())
            texts.extend(key for key in item if type(key) is str)
        elif kind is list:
            pending.extend(item)
        elif kind is int or item is None:
            continue
        elif isinstance(item, str):
            texts.append(item)
        elif isinstance(item, Mapping):
            pending.extend(item.values())
            texts.extend(key for key in item if isinstance(key, str))
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
    return texts


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in value]
    return value
