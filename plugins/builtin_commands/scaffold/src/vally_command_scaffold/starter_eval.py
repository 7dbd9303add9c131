"""The eval that `vally init` writes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from string import Template

from vally import VallyError
from vally_command_scaffold.resources import template, templates_below

# What needs no quotes in YAML, whatever comes after it on the line.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


def starter_eval(path: Path, executor: str, schema: Path | None) -> str:
    """The text of the eval at `path`; its first line refers to the schema, if there is one."""
    if not executor.strip():
        raise VallyError("the name of an executor must not be blank", where="--executor")
    # The directory may be written as `.` or end in `..`.
    name = Path(os.path.normpath(path.absolute().parent)).name
    values = {"name": scalar(f"{name}-eval" if name else "eval"), "executor": _executor_lines(executor)}
    text = Template(template("eval.yaml")).substitute(values)
    return text if schema is None else f"# yaml-language-server: $schema={_reference(path, schema)}\n{text}"


def files_beside(executor: str) -> dict[str, str]:
    """What an executor needs beside the eval, so that the eval runs: relative paths and texts."""
    split = [(path.partition("/"), text) for path, text in templates_below("files")]
    return {path: text for (owner, _, path), text in split if owner == executor}


def _executor_lines(executor: str) -> str:
    """The lines of `defaults` that choose an executor, with the settings that a built-in one does not start without."""
    known = dict(templates_below("executors"))
    return known.get(executor, f"  executor: {scalar(executor)}").rstrip("\n")


def scalar(text: str) -> str:
    """A text as a YAML scalar, quoted when it must be."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def _reference(path: Path, schema: Path) -> str:
    """How the eval names the schema: relative, or as a URI when the two have no directory in common."""
    try:
        relative = os.path.relpath(schema, path.parent)
    except ValueError:
        return schema.absolute().as_uri()
    return Path(relative).as_posix()
