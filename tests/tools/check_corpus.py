"""Load every eval spec and project file below a directory and print what vally says about each.

Usage: python tests/tools/check_corpus.py DIRECTORY [--codes] [--ignore CODE]...

Grader types that no installed plugin provides are stood in for by ones that take any config. The exit code is 1 when
loading raises anything, which it never may, whatever a file holds.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ConfigDict

from vally import Config, Diagnostic, GraderSpec, PluginHost
from vally.host import PluginSources
from vally.spec import find_project, format_diagnostic, read_eval_spec

# Types of families that may not be installed; the constraint keys are those of the graders chapter.
STAND_INS = {
    "tool-calls": {"expect_tools": "required", "reject_tools": "disallowed"},
    "skill-invocation": {"expect_skills": "required", "reject_skills": "disallowed"},
    "turn-count": {"max_turns": "max"},
    "token-budget": {"max_tokens": "max"},
    "wall-time": {"max_duration": "max"},
    "system-event": {},
    "tool-call-count": {},
    "step-count": {},
    "error-count": {},
    "custom-metrics": {},
    "max-repeat": {},
    "loop-outcome": {},
    "run-command": {},
    "program": {},
    "json-schema": {},
    "json-path": {},
}
JUDGES = ("prompt", "panel")


class AnyConfig(Config):
    """A config that takes every key."""

    model_config = ConfigDict(extra="allow")


def make_host() -> PluginHost:
    """Installed plugins, with stand-ins for the known types that none of them provides."""
    installed = PluginHost().records("grader")
    records = [
        GraderSpec(
            name=name,
            summary="takes any config",
            factory=object,
            config=AnyConfig,
            constraints=STAND_INS.get(name, {}),
            requires_judge=name in JUDGES,
        )
        for name in (*STAND_INS, *JUDGES)
        if name not in installed
    ]
    return PluginHost(sources=PluginSources(objects=tuple(records)))


def spec_files(root: Path) -> Iterator[Path]:
    """YAML files that look like eval specs: they have `stimuli` at the root."""
    for path in sorted(root.rglob("*")):
        if path.suffix in (".yaml", ".yml") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(line.startswith(("stimuli:", "stimuli_from:")) for line in text.splitlines()):
                yield path


def main() -> int:
    """Print findings per file and counts per code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--codes", action="store_true", help="print counts only")
    parser.add_argument("--ignore", action="append", default=[], help="leave out a code")
    options = parser.parse_args()
    host = make_host()
    counts: Counter[tuple[str, str]] = Counter()
    raised = 0
    files = list(spec_files(options.directory))
    for path in files:
        try:
            project = find_project(path.parent, options.directory)
            found = [*project.diagnostics, *read_eval_spec(path, project=project, host=host).diagnostics]
        except Exception:
            traceback.print_exc()
            raised += 1
            continue
        report(
            path.relative_to(options.directory), [item for item in found if item.code not in options.ignore], options
        )
        counts.update((item.level, item.code) for item in found)
    print(f"{len(files)} files")
    for (level, code), count in sorted(counts.items()):
        print(f"{count:6} {level} {code}")
    return 1 if raised else 0


def report(path: Path, found: list[Diagnostic], options: argparse.Namespace) -> None:
    """Print the findings of one file."""
    if options.codes:
        return
    print(f"== {path}: {len(found)}")
    for item in found:
        print(
            f"   {item.context or ''}: " if item.context else "   ", format_diagnostic(item).replace("\n", "\n      ")
        )


if __name__ == "__main__":
    sys.exit(main())
