"""One invocation of `vally simulate record`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vally import InvalidRegex, VallyError, atomic_write, compile_regex, plural, print_warning, write_machine_output
from vally_command_simulate.block import json_block, yaml_block
from vally_command_simulate.overrides import Recorder
from vally_command_simulate.trajectories import find_trajectory

if TYPE_CHECKING:
    from vally import CliContext

REMINDER = "results are copied as they are; look them through for secrets before you share them"
REDACTED = "<redacted:"


def record(context: CliContext, word: str, options: Mapping[str, Any]) -> int:
    """Do everything; returns the exit code. Raises `VallyError` when there is nothing to record."""
    target = None if options["output_file"] is None else context.cwd / options["output_file"]
    if target is not None and target.exists() and not options["force"]:
        raise VallyError(f"{options['output_file']} exists", where="--output-file", hints=("replace it with --force",))
    recorder = Recorder(
        wanted=_wanted(options["tools"]), max_bytes=options["max_bytes"], on_conflict=options["on_conflict"]
    )
    overrides = recorder.overrides(find_trajectory(context, word, options))
    for warning in dict.fromkeys(recorder.warnings):
        print_warning(warning)
    if not overrides:
        raise VallyError("no tool call to record", code="nothing-recorded", hints=(_hint(options["tools"]),))
    text = json_block(overrides) if options["format_"] == "json" else yaml_block(overrides)
    if target is None:
        write_machine_output(text)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(target, text, is_named=True)
    _remind(context, text, len(overrides))
    return 0


def _wanted(patterns: tuple[str, ...]) -> Callable[[str], bool] | None:
    if not patterns:
        return None
    try:
        compiled = [compile_regex(pattern) for pattern in patterns]
    except InvalidRegex as error:
        raise VallyError(str(error), where="--tool") from error
    return lambda name: any(regex.search(name) is not None for regex in compiled)


def _hint(patterns: tuple[str, ...]) -> str:
    if patterns:
        return "no successful call of a tool matches --tool"
    return "no successful call of an MCP tool is recorded; name others with --tool"


def _remind(context: CliContext, text: str, count: int) -> None:
    if REDACTED in text:
        print_warning("some results hold marks of redacted values instead of the values")
    if not context.display.quiet:
        sys.stderr.write(f"{plural(count, 'override')}; {REMINDER}\n")
