"""The environment and the private directories of a runtime process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vally import ExecutorError, ExecutorOptions, agent_environment

HOST_HOME_VARIABLE = "EVALUATE_USE_HOST_COPILOT_HOME"
SETTINGS_VARIABLE = "COPILOT_HOME_SETTINGS_JSON"
HOME_VARIABLE = "COPILOT_HOME"
TOKEN_VARIABLES = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
_OF_THE_TRIAL = ("VALLY_TRIAL", "GIT_CEILING_DIRECTORIES")
_WITHHELD = re.compile(
    r"COPILOT_CLI_PATH|COPILOT_HOME|COPILOT_CUSTOM_INSTRUCTIONS_DIRS|(?:GITHUB_)?COPILOT_\w*TOKEN|GH_TOKEN|GITHUB_TOKEN"
)
# Nothing may be fetched behind the back of a run, and no keychain be asked for a login that nobody wants.
_ALWAYS = {"COPILOT_AUTO_UPDATE": "false"}
_NO_KEYCHAIN = {"COPILOT_DISABLE_KEYTAR": "1"}


def shared_environment(options: ExecutorOptions, directory: Path, *, home: str) -> dict[str, str]:
    """The environment of a process that serves several trials; `directory` holds its home and temporary files."""
    own = agent_environment(
        options.process_env,
        home_dir=None if home == "host" else directory / "home",
        tmp_dir=directory / "tmp",
        workspace=directory,
        spec_env={},
        assets_dir=None,
        trial_id="",
    )[0]
    return {name: value for name, value in {**own, **options.base_env}.items() if name not in _OF_THE_TRIAL}


def runtime_environment(env: Mapping[str, str], *, logged_in: bool, host_home: bool) -> dict[str, str]:
    """What a runtime process gets of an environment: no tokens, and no settings that lead out of the trial."""
    kept = {name: value for name, value in env.items() if not is_withheld(name, host_home=host_home)}
    return {**kept, **_ALWAYS, **({} if logged_in else _NO_KEYCHAIN)}


def is_withheld(name: str, *, host_home: bool = False) -> bool:
    """Whether the runtime would take a variable for its login or for settings of its own."""
    if host_home and name == "COPILOT_CUSTOM_INSTRUCTIONS_DIRS":
        return False
    return _WITHHELD.fullmatch(name.upper()) is not None


def host_copilot_home(process_env: Mapping[str, str]) -> Path | None:
    """The home that the user's own Copilot has, when trials are to use it."""
    if process_env.get(HOST_HOME_VARIABLE) != "1":
        return None
    if process_env.get(HOME_VARIABLE):
        return Path(process_env[HOME_VARIABLE])
    return Path(process_env.get("HOME") or process_env.get("USERPROFILE") or Path.home()) / ".copilot"


def copilot_settings(configured: Mapping[str, Any] | None, process_env: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The settings of a fresh home; raises `ExecutorError` for a variable that holds something else."""
    if configured is not None:
        return configured
    text = process_env.get(SETTINGS_VARIABLE)
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ExecutorError(f"{SETTINGS_VARIABLE} is not JSON: {error}", code="executor-config") from None
    if not isinstance(value, dict):
        raise ExecutorError(f"{SETTINGS_VARIABLE} must be a JSON object", code="executor-config")
    return value


def github_token(process_env: Mapping[str, str], names: Sequence[str] = TOKEN_VARIABLES) -> str | None:
    """The token of the user's subscription: the first of these variables that is set."""
    return next((process_env[name].strip() for name in names if process_env.get(name, "").strip()), None)
