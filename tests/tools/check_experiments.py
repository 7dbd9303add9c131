"""Resolve every experiment file below a directory and print its variants, its cells and what vally says about it.

Usage: python tests/tools/check_experiments.py DIRECTORY [--codes]

A cell is one eval in one variant. The exit code is 1 when reading raises anything, which it never may, whatever a file
holds.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from check_corpus import make_host

from vally import ResolvedExperiment, find_project, read_experiment
from vally.spec import format_diagnostic

NAMES = ("experiment.yaml", "*.experiment.yaml", "*.experiments.yaml")


def experiment_files(root: Path) -> Iterator[Path]:
    """Files with the names of experiments."""
    found = {path for name in NAMES for path in root.rglob(name) if path.is_file()}
    yield from sorted(found)


def main() -> int:
    """Print findings per file and counts per code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--codes", action="store_true", help="print counts only")
    options = parser.parse_args()
    root = options.directory.absolute()
    host = make_host()
    counts: Counter[tuple[str, str]] = Counter()
    raised = 0
    files = list(experiment_files(root))
    for path in files:
        try:
            resolved = read_experiment(path, project=find_project(path.parent, root), host=host)
        except Exception:
            traceback.print_exc()
            raised += 1
            continue
        counts.update((item.level, item.code) for item in resolved.diagnostics)
        if not options.codes:
            report(path.relative_to(root), resolved)
    print(f"{len(files)} files")
    for (level, code), count in sorted(counts.items()):
        print(f"{count:6} {level} {code}")
    return 1 if raised else 0


def report(path: Path, resolved: ResolvedExperiment) -> None:
    """Print what one file comes to."""
    config = resolved.config
    print(f"== {path}: {len(config.variants) if config else 0} variants, {len(resolved.specs)} cells")
    if config is not None:
        print(f"   hash {config.experiment_hash}, plan {resolved.plan_digest()}, vary {', '.join(config.vary)}")
    for item in resolved.specs:
        baseline = " (baseline)" if config is not None and item.variant == config.baseline else ""
        trials = sum(1 for _ in item.shard_keys())
        print(f"   {item.variant}{baseline}: {item.eval_file}, {trials} trials, {item.eval_hash} {item.config_hash}")
    for found in resolved.diagnostics:
        context = f"{found.context}: " if found.context else ""
        print(f"   {context}{format_diagnostic(found)}".replace("\n", "\n      "))


if __name__ == "__main__":
    sys.exit(main())
