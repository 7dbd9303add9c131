"""Options about plugins, read before all others: plugins bring options of their own, so they must be known first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LISTS = {
    "--grader-plugin": "grader_plugin",
    "--executor-plugin": "executor_plugin",
    "--reporter-plugin": "reporter_plugin",
    "--no-plugin": "no_plugin",
}
_FLAGS = {"--no-plugins": "no_plugins", "--no-project-plugins": "no_project_plugins"}


def early_plugin_words(args: Sequence[str]) -> dict[str, Any]:
    """The values of the plugin options among the words of a command, without judging any other word."""
    found: dict[str, Any] = {}
    words = iter(args)
    for word in words:
        if word == "--":
            break
        name, separator, value = word.partition("=")
        if name in _FLAGS:
            found[_FLAGS[name]] = True
        elif name in _LISTS:
            given = value if separator else next(words, None)
            if given is not None:
                found[_LISTS[name]] = (*found.get(_LISTS[name], ()), given)
    return found
