"""Calling foreign code: whatever it does becomes an error to report, never the end of the program."""

from __future__ import annotations

import importlib
import traceback
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_REASON = 400


class Rejected(Exception):
    """A plugin breaks a rule of the plugin API; the text is the reason as users see it."""


def guarded(function: Callable[..., Any], *args: Any) -> tuple[Any, BaseException | None]:
    """Call foreign code; returns (result, None) or (None, error). Only Ctrl-C and exhausted memory pass through."""
    try:
        return function(*args), None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return None, error


def reason_of(error: BaseException) -> str:
    """Return one line that says why foreign code failed: `Type: text`, or the text alone where that is the custom."""
    from vally.text.display import strip_controls

    text = " ".join(strip_controls(str(error)).split())
    if len(text) > _LONGEST_REASON:
        text = f"{text[: _LONGEST_REASON - 1]}…"
    if isinstance(error, ImportError | Rejected) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def trace_of(error: BaseException) -> str:
    """Return the traceback of a failure, for people who debug a plugin."""
    return "".join(traceback.format_exception(error))


def import_string(target: str) -> Any:
    """Import `package.module:attribute` and return the attribute, which may be dotted; without `:` the module."""
    module, _, attribute = target.partition(":")
    return reduce(getattr, attribute.split(".") if attribute else (), importlib.import_module(module))
