"""Public specs, when a corpus is at hand: `VALLY_CORPUS`, else `../shared/corpus`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from vally.spec import find_project, read_eval_spec

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("VALLY_CORPUS", ROOT.parent / "shared" / "corpus"))

# What public specs refer to and a corpus of specs does not hold.
MISSING = {"skill-not-found", "environment-file-not-found", "git-source-not-found", "golden-file-not-found"}

# True faults of single files, and how often each occurs. A parameter that has no value is one that a user must pass.
FAULTS = {
    "environment-file-missing-field": 2,
    "duplicate-stimulus-name": 1,
    "unknown-environment": 1,
    "unresolved-parameter": 4,
}

if CORPUS.is_dir():

    def test_public_specs_have_no_faults_but_these() -> None:
        found: Counter[str] = Counter()
        specs = 0
        for path in sorted(CORPUS.rglob("*.y*ml")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if not any(line.startswith(("stimuli:", "stimuli_from:")) for line in lines):
                continue
            specs += 1
            project = find_project(path.parent, path.parent, None, False)
            diagnostics = read_eval_spec(path, params={}, project=project).diagnostics
            found.update(item.code for item in diagnostics if item.level == "error" and item.code not in MISSING)
        assert specs > 50
        assert found == FAULTS
