"""Options about plugins, read before all others: plugins bring options of their own, so they must be known first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

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


def words_for(command: click.Command, ctx: click.Context, args: Sequence[str]) -> list[str]:
    """The words that are left for a command: those that leave plugins out are for the program if it has no such option.

    Two plugins may provide any command, so it must be possible to choose one of them for each.
    """
    others = _without_choices(args)
    leaf: click.Command | None = command
    for word in (word for word in others if not word.startswith("-")):
        if not isinstance(leaf, click.Group):
            break
        leaf = leaf.get_command(ctx, word)
    has_option = leaf is not None and any("--no-plugin" in param.opts for param in leaf.params)
    return list(args) if has_option else others


def _without_choices(args: Sequence[str]) -> list[str]:
    kept: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        if word == "--no-plugin":
            # Without a value it is left, and told as what it is.
            if next(words, None) is None:
                kept.append(word)
        elif word != "--no-plugins" and not word.startswith("--no-plugin="):
            kept.append(word)
    return kept
