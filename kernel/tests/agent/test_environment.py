"""What an agent process may know of its caller's environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import agent_environment

CALLER = {
    "PATH": "/bin",
    "LANG": "C",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "http://proxy",
    "NO_PROXY": "x",
    "JAVA_HOME": "/java",
    "npm_config_cache": "/npm",
    "HOME": "/home/caller",
    "XDG_CONFIG_HOME": "/home/caller/.config",
    "GH_TOKEN": "secret",
    "OPENAI_API_KEY": "secret",
    "EDITOR": "vi",
    "VALLY_CONFIG": "x",
    "VALLY_PROXY": "x",
    "EVALUATE_SEED": "1",
    "PYTHONPATH": "/p",
}


def build(**changes: Any) -> tuple[dict[str, str], dict[str, str]]:
    facts: dict[str, Any] = {
        "home_dir": Path("/t/home"),
        "tmp_dir": Path("/t/tmp"),
        "workspace": Path("/w/space"),
        "spec_env": {},
        "assets_dir": None,
        "trial_id": "id",
    }
    return agent_environment(CALLER, **{**facts, **changes})


def test_only_the_allow_list_is_taken() -> None:
    env, base = build()
    allowed = {"PATH", "LANG", "LC_ALL", "https_proxy", "NO_PROXY", "JAVA_HOME", "npm_config_cache"}
    assert set(base) == allowed
    private = {
        "HOME": "/t/home",
        "USERPROFILE": "/t/home",
        "APPDATA": "/t/home/AppData/Roaming",
        "LOCALAPPDATA": "/t/home/AppData/Local",
        "XDG_CONFIG_HOME": "/t/home/.config",
        "XDG_CACHE_HOME": "/t/home/.cache",
        "XDG_DATA_HOME": "/t/home/.local/share",
        "XDG_STATE_HOME": "/t/home/.local/state",
        "TMPDIR": "/t/tmp",
        "GIT_CEILING_DIRECTORIES": "/w",
        "VALLY_TRIAL": "id",
    }
    assert {name: value for name, value in env.items() if name not in allowed} == private


def test_named_variables_are_passed_and_reserved_ones_never() -> None:
    env, base = build(pass_env=["GH_TOKEN", "UNSET", "VALLY_CONFIG", "EVALUATE_SEED"])
    assert env["GH_TOKEN"] == base["GH_TOKEN"] == "secret"
    assert not {"UNSET", "VALLY_CONFIG", "EVALUATE_SEED"} & set(env)


@pytest.mark.parametrize("name", ["PATH", "HOME", "TMPDIR", "GIT_CEILING_DIRECTORIES", "NEW"])
def test_the_spec_wins_over_the_caller_and_over_private_directories(name: str) -> None:
    env, base = build(spec_env={name: "from the spec"}, pass_env=[name])
    assert env[name] == base[name] == "from the spec"


def test_private_directories_win_over_passed_variables() -> None:
    assert build(pass_env=["HOME"])[0]["HOME"] == "/t/home"


def test_reserved_names_win_over_everything() -> None:
    env, _ = build(spec_env={"VALLY_TRIAL": "x", "EVALUATE_ASSETS": "x"}, assets_dir=Path("/t/assets"))
    assert (env["VALLY_TRIAL"], env["EVALUATE_ASSETS"]) == ("id", "/t/assets")


def test_without_a_private_home_the_callers_is_kept() -> None:
    env, _ = build(home_dir=None)
    assert (env["HOME"], env["XDG_CONFIG_HOME"]) == ("/home/caller", "/home/caller/.config")
    assert "XDG_CACHE_HOME" not in env
    assert env["TMPDIR"] == "/t/tmp"
