"""Run the eval of this directory with a scripted model: no key, no network. Arguments are handed to `vally eval`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from vally.testing import MockLlm

HERE = Path(__file__).parent
# What the model does, one answer per line; `!also` is a second call in the same answer.
SCRIPT = r"""
!tool skill {"skill": "house-style"}
!tool glob {"pattern": "**/*.py"}
!also grep {"pattern": "def total", "glob": "*.py"}
!tool view {"path": "sums.py"}
!tool edit {"path": "sums.py", "old_str": "range(1, n)", "new_str": "range(1, n + 1)"}
!also create {"path": "CHANGES.md", "file_text": "- total() counts the last number, too.\n"}
!tool bash {"command": "python3 -m unittest -q", "description": "run the tests"}
!say total() left the last number out; it does not any more, and the tests pass."""


def main(words: list[str]) -> int:
    """Start the model server, run the eval, and return its exit code."""
    with MockLlm() as server:
        command = [sys.executable, "-m", "vally", "eval", "--eval-spec", str(HERE / "eval.yaml"), *words]
        command += ["--param", f"MODEL_URL={server.url}/v1", "--param", f"SCRIPT={SCRIPT}"]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
