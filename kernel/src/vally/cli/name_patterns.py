"""Globs for the names of evals and stimuli."""

from __future__ import annotations

from collections.abc import Callable

from vally.errors import VallyError


def name_matcher(pattern: str, option: str) -> Callable[[str], bool]:
    """Whether a name matches the glob of an option; names are no paths, so `*` crosses their slashes.

    Raises `VallyError` for an invalid glob.
    """
    from vally.text.globs import InvalidGlob, compile_glob

    try:
        glob = compile_glob(pattern.replace("/", "\x01"), dotfiles=True)
    except InvalidGlob as error:
        raise VallyError(str(error), where=option) from error
    return lambda name: glob.match(name.replace("/", "\x01"), is_dir=False)


def is_stimulus_named(pattern: str, eval_name: str, stimulus: str) -> bool:
    """Whether `--stimulus` with this glob means a stimulus; one with `::` is about `<eval>::<stimulus>`.

    A pattern equal to a name matches it whatever characters it has. Raises `VallyError` for an invalid glob.
    """
    full = f"{eval_name}::{stimulus}"
    if pattern in (stimulus, full):
        return True
    return name_matcher(pattern, "--stimulus")(full if "::" in pattern else stimulus)
