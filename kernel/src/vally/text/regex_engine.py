"""One JavaScript engine that runs ECMAScript regular expressions within limits."""

from __future__ import annotations

import json

MEMORY_LIMIT = 256 * 1024 * 1024
STACK_LIMIT = 256 * 1024

# Offsets come back instead of texts, so that no size of match and no half surrogate pair has to cross the boundary.
# The map bounds what an engine remembers: 256 compiled patterns.
_SEARCH = """
(function () {
  const compiled = new Map();
  return function (source, flags, text) {
    const key = flags + "/" + source;
    let regex = compiled.get(key);
    if (regex === undefined) {
      regex = new RegExp(source, flags + "d");
      if (compiled.size >= 256) compiled.clear();
      compiled.set(key, regex);
    }
    if (text === null) return "";
    const match = regex.exec(text);
    return match === null ? "" : JSON.stringify(match.indices);
  };
})()
"""

Spans = list[list[int] | None]


class EngineSyntaxError(Exception):
    """The pattern is not a regular expression; the text is the engine's message."""


class EngineInterrupted(Exception):
    """The time limit ended before the match did."""


class EngineFailure(Exception):
    """The engine ran out of memory or stack; the text is the engine's message."""


class Engine:
    """A regular expression engine; belongs to the thread that made it."""

    def __init__(self) -> None:
        import quickjs  # type: ignore[import-untyped]  # it has no stubs

        self._context = quickjs.Context()
        self._context.set_memory_limit(MEMORY_LIMIT)
        self._context.set_max_stack_size(STACK_LIMIT)
        self._search = self._context.eval(_SEARCH)
        self._errors: tuple[type[Exception], ...] = (quickjs.JSException, quickjs.StackOverflow)

    def search(self, source: str, flags: str, text: str | None, time_limit: float) -> Spans | None:
        """Find the first match: spans in UTF-16 code units, that of the whole match first. `text` None only compiles.

        `time_limit` is in seconds of processor time of the whole process, which is what the engine can measure.
        Raises EngineSyntaxError, EngineInterrupted, EngineFailure; after the last two the engine must be dropped.
        """
        self._context.set_time_limit(time_limit)
        try:
            found = self._search(source, flags, text)
        except self._errors as error:
            raise _translate(str(error)) from None
        spans: Spans | None = json.loads(found) if found else None
        return spans


def _translate(text: str) -> Exception:
    """Sort an engine exception by its text, from which the JavaScript stack (all after the first line break) is cut."""
    message = text.split("\n", 1)[0]
    if message.startswith("SyntaxError: "):
        return EngineSyntaxError(message.removeprefix("SyntaxError: "))
    if message == "InternalError: interrupted":
        return EngineInterrupted(message)
    return EngineFailure(message)
