"""Proving that sandboxes can be made on this machine, before anything else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from vally import BackendError
from vally_backend_sandbox.launching import isolated
from vally_backend_sandbox.mounts import WHOLE

UNAVAILABLE = "sandbox-unavailable"
OPTION = "--backend sandbox"
TIMEOUT_S = 30
NAMESPACE_HINT = (
    "does this system allow unprivileged user namespaces? See the settings kernel.unprivileged_userns_clone, "
    "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, or use --backend local or container"
)


def find_bwrap(process_env: Mapping[str, str]) -> str:
    """Return the path of a `bwrap` that works. Raises BackendError."""
    if sys.platform != "linux":
        raise BackendError("it needs Linux", code=UNAVAILABLE, where=OPTION)
    found = shutil.which("bwrap", path=process_env.get("PATH", os.defpath))
    if found is None:
        raise BackendError(
            "bwrap was not found on PATH",
            code=UNAVAILABLE,
            where=OPTION,
            hints=("install the package 'bubblewrap', or use --backend local or container",),
        )
    bwrap = str(Path(found).absolute())
    problem = _problem(bwrap)
    if problem is not None:
        raise BackendError(
            f"bwrap cannot make a sandbox: {problem}", code=UNAVAILABLE, where=OPTION, hints=(NAMESPACE_HINT,)
        )
    return bwrap


def _problem(bwrap: str) -> str | None:
    try:
        done = subprocess.run(
            [*isolated(bwrap, WHOLE, network=False), "--", "/bin/sh", "-c", ":"],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {TIMEOUT_S} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    said = " ".join(done.stderr.decode("utf-8", errors="replace").split())
    return said or f"exit code {done.returncode}"
