"""The plugin packages that `vally init --plugin` writes."""

from __future__ import annotations

import keyword
import os
import re
import sys
from pathlib import Path
from string import Template

import vally
from vally import VallyError
from vally_command_scaffold.resources import templates_below

_LONGEST_NAME = 60
_DESCRIPTIONS = {
    "grader": "A grader for vally: the answer has at most so many words",
    "executor": "An executor for vally: a program that gets each prompt as its last argument",
    "reporter": "A reporter for vally: a CSV file with one line per trial",
}
_DEPENDENCIES = {"grader": ("pydantic>=2.11,<3",), "executor": ("anyio>=4,<5", "pydantic>=2.11,<3"), "reporter": ()}


def plugin_files(kind: str, directory: Path) -> dict[str, str]:
    """The files of a package by relative path; its names follow from the name of the directory."""
    folder = Path(os.path.normpath(directory.absolute())).name
    names = _names(kind, folder)
    requirements = [_kernel_requirement(), *_DEPENDENCIES[kind]]
    values = {
        **names,
        "kind": kind,
        "directory": folder,
        "description": _DESCRIPTIONS[kind],
        "dependencies": ", ".join(f'"{requirement}"' for requirement in requirements),
    }
    templates = dict([*templates_below("common"), *templates_below(kind)])
    return {
        path.replace("PACKAGE", names["package"]): Template(text).substitute(values)
        for path, text in sorted(templates.items())
    }


def _names(kind: str, folder: str) -> dict[str, str]:
    """Names of distribution, package, record and class."""
    distribution = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    package = distribution.replace("-", "_")
    taken = package == "vally" or package in sys.stdlib_module_names
    if taken or not package.isidentifier() or keyword.iskeyword(package):
        raise VallyError(
            f"'{folder}' cannot be the name of a package",
            where="DIR",
            hints=["use letters, digits and '-', start with a letter, and choose a name that is not taken"],
        )
    stem = re.sub(rf"^(?:vally-)?(?:{kind}s?-)?|-{kind}s?$", "", distribution) or distribution
    name = stem[:_LONGEST_NAME].strip("-")
    words = "".join(word.capitalize() for word in name.split("-"))
    class_name = words if words[0].isalpha() else f"{kind.capitalize()}{words}"
    return {"distribution": distribution, "package": package, "keyword": name, "class_name": class_name}


def _kernel_requirement() -> str:
    major, minor, *_ = vally.__version__.split(".")
    return f"vally-kernel>={major}.{minor},<{int(major) + 1}"
