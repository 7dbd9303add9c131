"""What the processes of a run tell each other.

Three kinds take part: `vally` itself (the driver), a process beside it that talks to Ray (the bridge), and the workers.
Bytes in a message are packed values that the bridge hands on without looking into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vally import PluginSources, Trajectory, TrialItem

PIECE_BYTES = 8 * 2**20
"""Largest piece in which anything is carried."""

INLINE_BYTES = 2**20
"""Outcomes up to this size come with the reply; larger ones are fetched in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What all workers of a run are given. `environment` replaces that of the process, `extra` is added to it.

    `versions` maps distributions to the versions that the driver runs.
    """

    run_id: str
    inner: str
    inner_args: Mapping[str, str | list[str]]
    slots: int
    environment: Mapping[str, str] | None
    extra: Mapping[str, str]
    cache_dir: Path | None
    project_root: Path
    versions: Mapping[str, str]
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What the bridge needs to know of the cluster; without `address` it starts one that keeps to `directory`.

    `worker` are packed `WorkerSettings`; `host` is that of the run.
    """

    address: str | None
    directory: Path
    workers: int
    slots: int
    cpus: float
    memory: int | None
    resources: Mapping[str, float]
    max_losses: int
    worker: bytes
    host: HostPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """How a worker makes the plugin host of a run. Local paths are absolute, and lie in the bundle `bundle`."""

    key: str
    sources: PluginSources
    bundle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """What graders may ask a judge client without a call."""

    supports_files: bool
    metadata: Mapping[str, object]
    model: str
    effort: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOrder:
    """One trial for a worker. Paths are those of the driver; directories are None where the driver has none."""

    item: TrialItem
    output_dir: Path | None
    run_dir: Path | None
    session_log: Path | None
    skip_grade: bool
    shutdown_timeout_s: float
    wants_events: bool
    judge: JudgeFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeOrder:
    """A recorded trajectory for a worker to grade."""

    item: TrialItem
    trajectory: Trajectory
    work_dir: Path | None
    run_dir: Path | None
    diff_file: Path | None
    judge: JudgeFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Work for the bridge to place: `body` is a packed `TrialOrder` or `GradeOrder`.

    `attempt` names it in all messages. `directory` is where the bridge puts the files that come back.
    """

    attempt: str
    host: str
    bundle: str
    body: bytes
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """A file that waits on a worker: a relative POSIX path, bytes, permission bits; `link` is the aim of a link."""

    name: str
    size: int
    mode: int
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a worker answers: a packed result, here or as the file `body_file`, and the files that belong to it."""

    body: bytes | None
    files: tuple[FileFacts, ...] = ()
    body_file: FileFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the bridge hands to the driver. `losses` says, one line each, which workers were lost with the item.

    Without `body` the item lost more workers than allowed.
    """

    body: bytes | None
    files: tuple[FileFacts, ...] = ()
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """A question to a judge. `request` has the fields of `JudgeRequest` but the check and the evidence.

    `evidence` maps names below the evidence directory to contents; `evidence_dir` is where that was on the worker.
    """

    call: str
    request: Mapping[str, Any]
    evidence_dir: str | None = None
    evidence: tuple[tuple[str, bytes], ...] = ()
    evidence_files: tuple[str, ...] = ()
