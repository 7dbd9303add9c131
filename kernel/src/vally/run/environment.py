"""The environment of agent processes: an allow-list of the caller's, private directories, the spec's own variables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_ALLOWED = frozenset(
    {
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "SHELL",
        "USER",
        "LOGNAME",
        "LOG_LEVEL",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "JAVA_HOME",
        "DOTNET_ROOT",
        "GOROOT",
        "GOPATH",
        "GOMODCACHE",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "NVM_DIR",
        "PYENV_ROOT",
        "VIRTUAL_ENV",
        "NUGET_PACKAGES",
        "PIP_CACHE_DIR",
        "UV_CACHE_DIR",
        "npm_config_cache",
        "GRADLE_USER_HOME",
    }
)
_ALLOWED_ON_WINDOWS = frozenset({"SYSTEMROOT", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS"})
_HOME_VARIABLES = (
    ("HOME", ""),
    ("USERPROFILE", ""),
    ("APPDATA", "AppData/Roaming"),
    ("LOCALAPPDATA", "AppData/Local"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
)
_RESERVED_PREFIXES = ("EVALUATE_", "VALLY_")


def agent_environment(
    process_env: Mapping[str, str],
    *,
    pass_env: Iterable[str] = (),
    home_dir: Path | None,
    tmp_dir: Path,
    workspace: Path,
    spec_env: Mapping[str, str],
    assets_dir: Path | None,
    trial_id: str,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment of a trial's agent processes, and the same without its trial-specific part.

    `process_env` is the environment of vally, of which only an allow-list and the names in `pass_env` are taken.
    `home_dir` None keeps the caller's home. `spec_env` are the variables of the spec's environments. The directories
    are not created.
    """
    taken = {**allowed_environment(process_env), **_passed(process_env, pass_env)}
    home = _callers_home(process_env) if home_dir is None else _private_home(home_dir)
    private = {**home, **_temporary(tmp_dir), "GIT_CEILING_DIRECTORIES": str(workspace.parent)}
    reserved = {"VALLY_TRIAL": trial_id}
    if assets_dir is not None:
        reserved["EVALUATE_ASSETS"] = str(assets_dir)
    return {**taken, **private, **spec_env, **reserved}, {**taken, **spec_env}


def candidate_variables(process_env: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """The part of an environment that `agent_environment` may take anything from; for who calls it many times."""
    homes = {name: process_env[name] for name, _ in _HOME_VARIABLES if name in process_env}
    return {**allowed_environment(process_env), **homes, **_passed(process_env, pass_env)}


def allowed_environment(process_env: Mapping[str, str]) -> dict[str, str]:
    """The variables every process may have: search path, language, proxies, certificates and homes of tools."""
    return {name: value for name, value in process_env.items() if _is_allowed(name)}


def _is_allowed(name: str) -> bool:
    if _is_reserved(name):
        return False
    if sys.platform == "win32":
        name = name.upper()
        if name in _ALLOWED_ON_WINDOWS or name.startswith("PROCESSOR_"):
            return True
    return name in _ALLOWED or name.startswith("LC_") or name.endswith(("_PROXY", "_proxy"))


def _passed(process_env: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: process_env[name] for name in names if name in process_env and not _is_reserved(name)}


def _is_reserved(name: str) -> bool:
    return name.upper().startswith(_RESERVED_PREFIXES)


def _private_home(home: Path) -> dict[str, str]:
    return {name: str(home / below) for name, below in _HOME_VARIABLES}


def _callers_home(process_env: Mapping[str, str]) -> dict[str, str]:
    return {name: process_env[name] for name, _ in _HOME_VARIABLES if name in process_env}


def _temporary(tmp_dir: Path) -> dict[str, str]:
    names = ("TEMP", "TMP", "TMPDIR") if sys.platform == "win32" else ("TMPDIR",)
    return dict.fromkeys(names, str(tmp_dir))
