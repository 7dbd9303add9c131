"""A project with something to hide, whose evals run where agents are confined."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from programs import records_of, run_dir

from vally.testing import CliResult, run_cli

KEY = "canary-19d2-agent-key"
HEADER = "canary-2c07-header-secret"
HIDDEN = "canary-61aa-expected-answer"
DONE = {"type": "completed"}


class ConfinedProject:
    """A project with something to hide, below a home directory that is hidden as well.

    `backend` confines its agents; `words` and `env` are what every run needs for that.
    """

    def __init__(
        self, root: Path, backend: str = "sandbox", words: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.backend = backend
        self._words = list(words)
        self.root = root / "project"
        for path in (self.root, root / "home", root / "tmp"):
            path.mkdir(parents=True)
        (self.root / "expected.txt").write_text(HIDDEN)
        self.env = {
            # Where `python3` is one that a sandbox shows, and no shim in a home directory.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "VALLY_CACHE_DIR": str(root / "cache"),
            "SCENARIO_API_KEY": KEY,
            "TEAM_HEADER": HEADER,
            **(env or {}),
        }

    def write(self, executor: dict[str, Any], stimulus: dict[str, Any], **defaults: Any) -> None:
        defaults = {"executor": executor, "timeout": "60s", **defaults}
        spec = {"name": "e", "defaults": defaults, "stimuli": [{"name": "s", "graders": [DONE], **stimulus}]}
        (self.root / "eval.yaml").write_text(json.dumps(spec))

    def run(self, *words: str) -> CliResult:
        arguments = ["eval", "-e", "eval.yaml", "--output-dir", "out", "--backend", self.backend, *self._words, *words]
        result = run_cli(arguments, cwd=self.root, env=self.env)
        assert "Traceback" not in result.stdout + result.stderr
        return result

    def trial(self, *words: str) -> dict[str, Any]:
        result = self.run(*words)
        assert (self.root / "out").is_dir(), result.stderr
        return records_of(self.root)[0]

    def kept(self) -> str:
        """Everything that a run leaves behind."""
        files = [path for path in run_dir(self.root).rglob("*") if path.is_file()]
        assert files
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)
