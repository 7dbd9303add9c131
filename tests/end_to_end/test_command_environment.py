"""What an agent run by its command line gets of its caller's environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vally.testing import run_cli

CALLER = {"TOKEN": "not-a-secret-at-all", "OTHER": "other", "VALLY_LOG_LEVEL": "error", "EVALUATE_SEED": "9"}


def agent_sees(root: Path, config: dict[str, Any]) -> dict[str, str]:
    executor = {"name": "command", "config": {"command": ["sh", "-c", "env; echo FILE=$(pwd)"], **config}}
    spec = {
        "name": "e",
        "environment": {"env": {"OF_THE_SPEC": "spec"}},
        "defaults": {"executor": executor},
        "stimuli": [{"name": "s", "prompt": "p"}],
    }
    (root / "eval.yaml").write_text(json.dumps(spec))
    home = root / "caller"
    home.mkdir()
    record = run_cli(["eval", "-e", "eval.yaml"], cwd=root, env={**CALLER, "HOME": str(home)}).records[0]
    lines = record["trajectory"]["output"].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_the_environment_is_private_by_default(tmp_path: Path) -> None:
    seen = agent_sees(tmp_path, {})
    assert seen["OF_THE_SPEC"] == "spec"
    assert seen["HOME"] != str(tmp_path / "caller")
    assert Path(seen["HOME"]).name == "home"
    assert not set(CALLER) & set(seen)


def test_what_the_config_passes_on(tmp_path: Path) -> None:
    seen = agent_sees(tmp_path, {"passEnv": ["OTHER", "VALLY_LOG_LEVEL", "EVALUATE_SEED", "UNSET"]})
    assert seen["OTHER"] == "other"
    assert not {"TOKEN", "VALLY_LOG_LEVEL", "EVALUATE_SEED", "UNSET"} & set(seen)


@pytest.mark.parametrize("name", ["HOME", "OF_THE_SPEC"])
def test_the_config_wins(tmp_path: Path, name: str) -> None:
    seen = agent_sees(tmp_path, {"env": {name: "{workspace}/x"}})
    assert seen[name] == f"{seen['FILE']}/x"


def test_the_callers_home_when_asked_for(tmp_path: Path) -> None:
    assert agent_sees(tmp_path, {"home": "host"})["HOME"] == str(tmp_path / "caller")
