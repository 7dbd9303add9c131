"""Regular expressions of eval specs: the ECMAScript dialect without the `u` and `v` flags, with a time limit.

The engine releases the interpreter lock while it matches, so a slow match in a worker thread delays nobody else.
`search` blocks its caller: code on an event loop calls it through a worker thread.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache

from vally.errors import VallyError
from vally.text.regex_engine import Engine, EngineFailure, EngineInterrupted, EngineSyntaxError, Spans

TIME_LIMIT = 5.0
# Nearly every match ends within this, in the calling thread. The rest starts anew in a helper process, for which the
# elapsed limit of the dialect can be kept exactly (see regex_worker).
QUICK_LIMIT = 0.25

_FLAG_PREFIX = re.compile(r"\(\?([ims]+)\)")
_LITERAL = re.compile(r"[A-Za-z0-9_ ,:;<>=!@#%&~\"'`/-]+")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidRegex(VallyError, ValueError):
    """A pattern is not valid.

    The text is the whole evidence line; `message` is the engine's text without its `SyntaxError: `.
    """

    def __init__(self, pattern: str, message: str) -> None:
        super().__init__(f"Invalid regex pattern: {pattern}. Error: {message}")
        self.pattern = pattern
        self.message = message


class RegexError(VallyError):
    """The engine ran out of memory or stack; the text is the engine's message."""


class RegexTimeout(VallyError):
    """A match exceeded its time limit; the text is the evidence line."""


@dataclass(frozen=True, slots=True)
class RegexMatch:
    """The first match: offset and length in UTF-16 code units, matched text, groups 1… (None: took no part)."""

    index: int
    length: int
    text: str
    groups: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Regex:
    """A valid pattern: as written, and as the engine gets it. May be shared between threads."""

    pattern: str
    source: str
    flags: str

    def search(self, text: str, *, time_limit: float = TIME_LIMIT) -> RegexMatch | None:
        """Find the first match anywhere in `text`; lone surrogates in it count as U+FFFD.

        `time_limit` is in elapsed seconds. Raises RegexTimeout and RegexError.
        """
        if self._is_literal and text.isascii():
            return self._find(text)
        subject = _well_formed(text)
        try:
            spans = _search(self.source, self.flags, subject, time_limit)
        except EngineInterrupted:
            raise RegexTimeout(f"Regex timed out after {time_limit:g}s: /{self.pattern}/") from None
        except EngineFailure as error:
            raise RegexError(str(error)) from None
        return None if spans is None else _match(subject, spans)

    @property
    def _is_literal(self) -> bool:
        return not self.flags and _LITERAL.fullmatch(self.source) is not None

    def _find(self, text: str) -> RegexMatch | None:
        # A pattern without operators needs no engine, and most names of tools are such patterns.
        index = text.find(self.source)
        return None if index < 0 else RegexMatch(index, len(self.source), self.source, ())


def compile_regex(pattern: str, *, unicode: bool = False) -> Regex:
    """Compile a pattern: a leading `(?` + letters of `ims` + `)` becomes flags.

    `unicode` sets the flag `u` too: code points instead of code units, `\\p{…}`, and a stricter grammar. Raises
    InvalidRegex, also for an empty pattern and a bare flag prefix, and RegexError.
    """
    return _compile(pattern, unicode)


@lru_cache(maxsize=1024)
def _compile(pattern: str, unicode: bool) -> Regex:
    prefix = _FLAG_PREFIX.match(pattern)
    flags = "".join(sorted({*(prefix[1] if prefix else ""), *("u" if unicode else "")}))
    source = _well_formed(pattern[prefix.end() :] if prefix else pattern)
    if not source:
        raise InvalidRegex(pattern, "no pattern after the flags" if prefix else "the pattern is empty")
    try:
        _quick(source, flags, None, TIME_LIMIT)
    except EngineSyntaxError as error:
        raise InvalidRegex(pattern, str(error)) from None
    except (EngineInterrupted, EngineFailure) as error:
        raise RegexError(str(error)) from None
    return Regex(pattern, source, flags)


class _PerThread(threading.local):
    """The engine of each thread: an engine may be entered only by one. A cache, which no caller can observe."""

    engine: Engine | None = None


_per_thread = _PerThread()


def _quick(source: str, flags: str, text: str | None, time_limit: float) -> Spans | None:
    engine = _per_thread.engine or Engine()
    _per_thread.engine = None
    try:
        spans = engine.search(source, flags, text, time_limit)
    except EngineSyntaxError:
        _per_thread.engine = engine
        raise
    _per_thread.engine = engine
    return spans


def _search(source: str, flags: str, text: str, time_limit: float) -> Spans | None:
    try:
        return _quick(source, flags, text, min(QUICK_LIMIT, time_limit))
    except EngineInterrupted:
        from vally.text.regex_worker import search_elsewhere

        return search_elsewhere(source, flags, text, time_limit)


def _well_formed(text: str) -> str:
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def _match(subject: str, spans: Spans) -> RegexMatch:
    whole = spans[0] or [0, 0]
    if subject.isascii():
        texts = [None if span is None else subject[span[0] : span[1]] for span in spans]
    else:
        # Offsets count code units, and without the `u` flag a match may split a surrogate pair.
        units = subject.encode("utf-16-le")
        texts = [
            None if span is None else units[2 * span[0] : 2 * span[1]].decode("utf-16-le", "replace") for span in spans
        ]
    return RegexMatch(whole[0], whole[1] - whole[0], texts[0] or "", tuple(texts[1:]))
