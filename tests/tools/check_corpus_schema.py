"""Hold every eval spec, project file and experiment below a directory against the schemas of `vally schema`.

Usage: python tests/tools/check_corpus_schema.py DIRECTORY

A file in which vally itself finds nothing wrong, or only things that no schema can know, must be accepted. Grader
types that no installed plugin provides are stood in for as in `check_corpus.py`. The exit code is 1 when a file is
refused that should not be.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from check_corpus import make_host
from jsonschema import Draft202012Validator

from vally import PluginHost, find_project, json_schema, read_eval_spec, read_experiment_config, read_project
from vally.spec.diagnostics import Collector, Place
from vally.spec.nodes import MappingNode, Source
from vally.spec.reader import read_yaml
from vally.spec.shapes import read_plain

# What depends on other files, on other values of the same file, or on what is installed.
BEYOND_SCHEMAS = {
    "attachment-not-found", "discovery-path-not-found", "duplicate-grader-name", "duplicate-stimulus-name",
    "environment-file-not-found", "file-not-found", "golden-file-not-found", "invalid-scoring-weight-key",
    "skill-name-collision", "skill-not-found", "unknown-baseline", "unknown-environment", "unresolved-parameter",
}  # fmt: skip
PROJECT_NAMES = (".vally.yaml", ".vally.yml")


def main() -> int:
    """Print every file that is refused, and counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    root = parser.parse_args().directory.absolute()
    host = make_host()
    validators = {kind: Draft202012Validator(json_schema(kind, host=host)) for kind in ("eval", "config", "experiment")}
    counts: Counter[str] = Counter()
    wrong = 0
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file()):
        document = read(path)
        kind = kind_of(path, document)
        if kind is None:
            continue
        problems = [f"{error.json_path}: {error.message[:200]}" for error in validators[kind].iter_errors(document)]
        errors = errors_of(kind, path, root, host)
        refused_wrongly = bool(problems) and errors <= BEYOND_SCHEMAS
        wrong += refused_wrongly
        counts[f"{kind}: {'refused' if problems else 'accepted'}, {'wrong' if errors else 'right'} to vally"] += 1
        if problems:
            print(f"{path.relative_to(root)}: {', '.join(sorted(errors)) or 'loads'}")
            print("\n".join(f"   {problem}" for problem in problems[:3]))
    for line, count in sorted(counts.items()):
        print(f"{count:6} {line}")
    return 1 if wrong else 0


def read(path: Path) -> Any:
    """The document as an editor sees it, or None when it cannot be parsed."""
    collector = Collector()
    node = read_yaml(path.read_bytes(), Source(path.name, path, path.parent), collector)
    return read_plain(node, Place(), collector) if isinstance(node, MappingNode) else None


def kind_of(path: Path, document: Any) -> str | None:
    """What a file is, by its name and its keys."""
    if path.name in PROJECT_NAMES:
        return "config"
    keys = set(document) if isinstance(document, dict) else set()
    if keys & {"stimuli", "stimuli_from"}:
        return "eval"
    return "experiment" if keys & {"variants", "matrix"} else None


def errors_of(kind: str, path: Path, root: Path, host: PluginHost) -> set[str]:
    """Codes of the errors that vally finds."""
    project = read_project(path) if kind == "config" else find_project(path.parent, root)
    found = project.diagnostics
    if kind == "eval":
        found = read_eval_spec(path, project=project, host=host, lint=True).diagnostics
    elif kind == "experiment":
        found = read_experiment_config(path, project=project, host=host, lint=True).diagnostics
    return {item.code for item in found if item.level == "error"}


if __name__ == "__main__":
    sys.exit(main())
