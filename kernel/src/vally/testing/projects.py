"""Projects on disk: evals, skills, files, a repository; what is written is valid."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class ProjectBuilder:
    """Writes a project below a directory; every method returns the path it wrote."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def eval(self, name: str, stimuli: Sequence[Mapping[str, Any] | str] = ("Do it.",), **keys: Any) -> Path:
        """Write `evals/<name>/eval.yaml`; a stimulus may be a prompt alone. `keys` are further keys of the spec."""
        document = {"name": name, **keys, "stimuli": [_stimulus(index, item) for index, item in enumerate(stimuli)]}
        return self.yaml(f"evals/{name}/eval.yaml", document)

    def skill(self, name: str, body: str = "Follow these steps.", *, description: str | None = None) -> Path:
        """Write `skills/<name>/SKILL.md` and return the directory."""
        summary = json.dumps(description or f"Use this for {name}.", ensure_ascii=False)
        text = f"---\nname: {name}\ndescription: {summary}\n---\n\n# {name}\n\n{body}\n"
        return self.file(f"skills/{name}/SKILL.md", text).parent

    def project(self, **keys: Any) -> Path:
        """Write `.vally.yaml`."""
        return self.yaml(".vally.yaml", keys)

    def experiment(
        self,
        name: str = "experiment",
        *,
        evals: Sequence[str] = ("evals/*/eval.yaml",),
        variants: Mapping[str, Mapping[str, Any] | None] | None = None,
        vary: Sequence[str] = ("/environment/skills",),
        **keys: Any,
    ) -> Path:
        """Write `<name>.experiment.yaml` with variants, by default one without skills and one as written."""
        made = {"off": {"environment": {"skills": []}}, "on": {}} if variants is None else variants
        document = {"name": name, "evals": list(evals), "vary": list(vary), "variants": dict(made), **keys}
        return self.yaml(f"{name}.experiment.yaml", document)

    def yaml(self, path: str, document: Mapping[str, Any]) -> Path:
        """Write a mapping as YAML, which JSON is."""
        return self.file(path, json.dumps(document, ensure_ascii=False, indent=2) + "\n")

    def file(self, path: str, text: str | bytes) -> Path:
        """Write a file, its directories included."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    def git(self, message: str = "start") -> str:
        """Commit everything, in a new repository at first; returns the commit id."""
        if not (self.root / ".git").exists():
            self._git("init", "--quiet", "--initial-branch", "main")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message)
        return self._git("rev-parse", "HEAD")

    def _git(self, *words: str) -> str:
        # Neither the user's settings nor hooks may change what a test sees.
        command = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "core.hooksPath=/dev/null"]
        command += ["-c", "commit.gpgsign=false", *words]
        done = subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def _stimulus(index: int, item: Mapping[str, Any] | str) -> dict[str, Any]:
    written = {"prompt": item} if isinstance(item, str) else dict(item)
    made: dict[str, Any] = {"name": f"stimulus-{index + 1}"}
    if "prompt" not in written and "turns" not in written:
        made["prompt"] = "Do it."
    return {**made, **written}
