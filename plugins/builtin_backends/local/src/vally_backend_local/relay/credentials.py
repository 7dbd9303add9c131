"""The token that an agent has in the place of a key, and hiding the key in what it is answered."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote_to_bytes

KEY_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
"""Headers, in lower case, by which the known dialects present a key."""
KEY_PARAMETER = b"key"
"""The parameter of the query by which one of them may present it."""
OTHER_CREDENTIALS = frozenset({b"cookie", b"proxy-authorization"})
_BEARER = re.compile(rb"bearer[ \t]+", re.IGNORECASE)

Header = tuple[bytes, bytes]
"""Name in lower case, and value."""


class Token:
    """What stands for the `secret` of a provider, wherever a dialect has its key; None when the provider has none."""

    def __init__(self, text: str, secret: str | None) -> None:
        self._token = text.encode()
        self._secret = None if secret is None else secret.encode()

    def is_presented(self, headers: Iterable[Header], target: bytes) -> bool:
        """Whether a request holds the token."""
        return any(name in KEY_HEADERS and self._is_token(_key(value)) for name, value in headers) or any(
            self._is_parameter(item) for item in _query(target)
        )

    def headers(self, headers: Iterable[Header]) -> list[Header]:
        """The headers with the secret in the place of the token; other credentials are left out."""
        kept = []
        for name, value in headers:
            if name not in KEY_HEADERS:
                kept += [] if name in OTHER_CREDENTIALS else [(name, value)]
            elif self._secret is not None and self._is_token(_key(value)):
                kept.append((name, value.replace(self._token, self._secret)))
        return kept

    def target(self, target: bytes) -> bytes:
        """The target with the secret in the place of the token."""
        if not any(map(self._is_parameter, _query(target))):
            return target
        kept = [item for item in _query(target) if not self._is_parameter(item)]
        if self._secret is not None:
            kept.append(KEY_PARAMETER + b"=" + quote(self._secret, safe="").encode())
        path = target.partition(b"?")[0]
        return path + b"?" + b"&".join(kept) if kept else path

    def _is_parameter(self, item: bytes) -> bool:
        name, _, value = item.partition(b"=")
        return name == KEY_PARAMETER and self._is_token(unquote_to_bytes(value))

    def _is_token(self, presented: bytes) -> bool:
        return hmac.compare_digest(presented, self._token)


class Concealer:
    """Overwrites secrets in a stream of bytes, whose length stays the same.

    Holds back no more than what may be the beginning of a secret.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((secret.encode() for secret in set(secrets) if secret), key=len, reverse=True)
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be passed on after one more piece."""
        text = self.whole(self._held + piece)
        held = max((_beginning(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def rest(self) -> bytes:
        """What was held back; there is no secret in it."""
        held, self._held = self._held, b""
        return held

    def whole(self, text: bytes) -> bytes:
        """A text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, b"*" * len(secret))
        return text


def _key(value: bytes) -> bytes:
    scheme = _BEARER.match(value)
    return value[scheme.end() :] if scheme else value


def _query(target: bytes) -> list[bytes]:
    query = target.partition(b"?")[2]
    return query.split(b"&") if query else []


def _beginning(text: bytes, secret: bytes) -> int:
    """The length of the longest end of `text` with which `secret` begins."""
    return next((n for n in range(min(len(secret) - 1, len(text)), 0, -1) if text.endswith(secret[:n])), 0)
