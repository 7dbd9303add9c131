"""Lint every project below a directory and count what is found per code.

Usage: python tests/tools/lint_corpus.py DIRECTORY [--show CODE]...

Each directory directly below is a project: its specs, project file, experiments and skills are linted as
`vally lint . -e ... --all` does. The exit code is 1 when linting raises anything, which it never may.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vally import PluginHost, find_project
from vally_command_lint.findings import LintReport
from vally_command_lint.linting import LintOptions, lint


def spec_files(root: Path) -> Iterator[Path]:
    """YAML files that look like eval specs: they have `stimuli` at the root."""
    for path in sorted(root.rglob("*")):
        if path.suffix in (".yaml", ".yml") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(line.startswith(("stimuli:", "stimuli_from:")) for line in text.splitlines()):
                yield path


def lint_project(root: Path, host: PluginHost) -> LintReport:
    """The report of one project."""
    words = tuple(path.relative_to(root).as_posix() for path in spec_files(root))
    options = LintOptions(paths=(".",), specs=words, whole_project=True)
    return lint(options, cwd=root, project=find_project(root, root), host=host)


def main() -> int:
    """Print counts per code, and the findings of chosen codes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--show", action="append", default=[], help="print the findings of a code")
    options = parser.parse_args()
    host, counts, raised, files = PluginHost(), Counter[tuple[str, str]](), 0, 0
    for root in sorted(path.absolute() for path in options.directory.iterdir() if path.is_dir()):
        try:
            report = lint_project(root, host)
        except Exception:
            traceback.print_exc()
            raised += 1
            continue
        files += len(report.evals) + len(report.project) + len(report.skills)
        for found in report.all_findings:
            counts[found.level, found.code] += 1
            if found.code in options.show:
                print(f"{root.name}/{found.file}:{found.line}: [{found.code}] {found.sentence}")
    print(f"{files} files")
    for (level, code), count in sorted(counts.items()):
        print(f"{count:6} {level} {code}")
    return 1 if raised else 0


if __name__ == "__main__":
    sys.exit(main())
