"""Fetching the runtime from the npm registry, without Node: only when a user asks for it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from vally import VallyError
from vally_executor_copilot_sdk.runtime import executable, platform_name, runtime_below

TESTED_VERSION = "1.0.102"
LIMIT_S = 60.0
UNPACK_LIMIT_S = 300.0
_CHUNK_BYTES = 1 << 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def provision(version: str, directory: Path, process_env: Mapping[str, str], registry: str) -> Path:
    """The runtime of this version below `directory/<version>`; fetched unless it is there already.

    Of `process_env` the fetched program gets what it cannot do without. Raises `VallyError` when it cannot be fetched,
    when its integrity hash is another, and when it does not unpack.
    """
    target = directory / version
    found = runtime_below(target)
    if found is not None:
        return found
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=directory) as scratch:
        program = _fetch(version, Path(scratch), registry)
        unpacked = _unpack(program, Path(scratch), process_env)
        # Another process may have been faster; what it made is as good.
        with contextlib.suppress(OSError):
            unpacked.rename(target)
    found = runtime_below(target)
    if found is None:
        raise VallyError(f"'{target}' is there, but holds no runtime; remove it and try again")
    return found


def configured_registry(process_env: Mapping[str, str]) -> str:
    """The registry that `npm_config_registry` names, else the one that npm is set to use; raises `VallyError`."""
    named = process_env.get("npm_config_registry")
    if named:
        return named
    npm = shutil.which("npm", path=process_env.get("PATH", os.defpath))
    if npm is None:
        raise VallyError("npm, which knows its registry, is not installed; name one with --registry URL")
    try:
        done = subprocess.run(
            [npm, "config", "get", "registry"],
            env=dict(process_env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VallyError(f"npm does not tell its registry: {error}; name one with --registry URL") from None
    told = done.stdout.strip()
    if done.returncode != 0 or not told.startswith(("https://", "http://")):
        raise VallyError("npm does not tell its registry; name one with --registry URL")
    return told


def _fetch(version: str, scratch: Path, registry: str) -> Path:
    """Download the package of this platform and return its program."""
    name = f"@github/copilot-{platform_name()}"
    facts = _json(f"{registry.rstrip('/')}/{quote(name, safe='@')}/{quote(version)}")
    dist = facts.get("dist")
    told = dist if isinstance(dist, dict) else {}
    archive = scratch / "package.tgz"
    digest = _download(str(told.get("tarball", "")), archive)
    if f"sha512-{digest}" not in str(told.get("integrity", "")).split():
        raise VallyError(f"{name} {version}: the archive is not the one that the registry describes; nothing was kept")
    try:
        with tarfile.open(archive) as package:
            # An attribute, because the argument `filter` came with Python 3.11.4; before that, it does nothing.
            package.extraction_filter = getattr(tarfile, "data_filter", None)
            package.extractall(scratch, members=_plain(package))
    except (tarfile.TarError, OSError) as error:
        raise VallyError(f"{name} {version}: the archive cannot be read: {error}") from None
    archive.unlink()
    program = scratch / "package" / executable("copilot")
    if not program.is_file():
        raise VallyError(f"{name} {version}: the package has no program '{program.name}'")
    return program


def _plain(package: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """What the archive holds. Packages of npm have files and directories only, and nothing may lie outside of them."""
    for info in package:
        path = PurePosixPath(info.name)
        if path.is_absolute() or ".." in path.parts or not (info.isfile() or info.isdir()):
            raise tarfile.ExtractError(f"'{info.name}' is not one of the files of a package")
        info.mode &= 0o755
        yield info


def _unpack(program: Path, scratch: Path, process_env: Mapping[str, str]) -> Path:
    """Let the program unpack its runtime, as it does when it first starts; returns the directory of its version."""
    home = scratch / "home"
    home.mkdir()
    private = {"HOME": home, "USERPROFILE": home, "XDG_CACHE_HOME": home / "cache", "LOCALAPPDATA": home / "cache"}
    taken = {name: process_env[name] for name in ("PATH", "SystemRoot") if name in process_env}
    env = {**taken, "COPILOT_AUTO_UPDATE": "false", **{name: str(path) for name, path in private.items()}}
    program.chmod(0o755)
    try:
        done = subprocess.run(
            [str(program), "--version"],
            cwd=home,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=UNPACK_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VallyError(f"the Copilot CLI does not start: {error}") from None
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise VallyError(f"the Copilot CLI does not start (exit code {done.returncode}): {reason}")
    found = next(home.rglob(executable("copilot-runtime")), None)
    if found is not None:
        return found.parents[2]
    # An older CLI serves the SDK itself.
    whole = scratch / "whole"
    place = whole / "prebuilds" / platform_name() / program.name
    place.parent.mkdir(parents=True)
    program.rename(place)
    return whole


def _json(url: str) -> Mapping[str, Any]:
    with _open(url) as answer:
        try:
            value = json.loads(answer.read())
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise VallyError(f"{url} is not an npm registry")
    return value


def _download(url: str, target: Path) -> str:
    """Write what a URL gives to a file; returns its SHA-512 in base64."""
    digest = hashlib.sha512()
    with _open(url) as answer, target.open("wb") as file:
        try:
            while chunk := answer.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
        except OSError as error:
            raise VallyError(f"{url}: {error}") from None
    return base64.b64encode(digest.digest()).decode()


def _open(url: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise VallyError(f"'{url}' is not an https URL")
    try:
        return urllib.request.urlopen(url, timeout=LIMIT_S)
    except urllib.error.HTTPError as error:
        with error:
            raise VallyError(f"{url}: HTTP status {error.code}; is there such a version?") from None
    except OSError as error:
        raise VallyError(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from None
