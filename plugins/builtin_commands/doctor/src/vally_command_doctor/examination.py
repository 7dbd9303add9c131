"""Looking at an installation: versions, then every executor, judge and backend at once."""

from __future__ import annotations

import platform
import re
import subprocess
from typing import TYPE_CHECKING, Any

from vally import __version__, described
from vally_command_doctor.findings import MISSING, Findings, Part

if TYPE_CHECKING:
    from vally import CliContext, PluginHost

KINDS = ("executor", "judge", "backend")
LIMIT_S = 60.0
AT_ONCE = 4


def examine(host: PluginHost, context: CliContext) -> Findings:
    """Examine everything; what hangs counts as missing after a minute."""
    import anyio

    parts = anyio.run(_parts, host, context)
    versions = {"vally": __version__, "Python": platform.python_version(), "git": _git_version(context)}
    return Findings(versions=versions, parts=parts)


def _git_version(context: CliContext) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--version"], env=dict(context.environ), capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return found[0] if found and done.returncode == 0 else None


async def _parts(host: PluginHost, context: CliContext) -> list[Part]:
    import anyio

    from vally import leave_threads_behind

    leave_threads_behind()
    rows = [row for kind in KINDS for row in host.listing([kind]) if row.state not in ("disabled", "shadowed")]
    found: dict[int, Part] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def look(index: int) -> None:
        async with limiter:
            found[index] = await _part(host, context, rows[index])

    async with anyio.create_task_group() as group:
        for index in range(len(rows)):
            group.start_soon(look, index)
    return [found[index] for index in sorted(found)]


async def _part(host: PluginHost, context: CliContext, row: Any) -> Part:
    import anyio

    from vally import VallyError
    from vally_command_doctor.probes import PROBES, Answer

    conflict = host.conflict(row.kind, row.name) if row.state == "conflict" else None
    answer = (
        Answer(MISSING, row.reason or row.status) if conflict is None else Answer(MISSING, row.status, conflict.hints)
    )
    if row.state == "ok":
        try:
            with anyio.fail_after(LIMIT_S):
                answer = await PROBES[row.kind](host, host.require(row.kind, row.name), context)
        except TimeoutError:
            answer = Answer(MISSING, f"did not answer within {LIMIT_S:g}s")
        except VallyError as error:
            answer = Answer(MISSING, error.message, error.hints)
        except Exception as error:
            answer = Answer(MISSING, described(error))
    return Part(
        kind=row.kind,
        name=row.name,
        version=row.version,
        source=row.source,
        status=answer.status,
        detail=answer.detail,
        hints=tuple(answer.hints),
    )
