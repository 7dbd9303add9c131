"""The backend: items go to workers, outcomes and questions to judges come back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from vally import (
    BackendError,
    ErrorInfo,
    ExportedFiles,
    GradeOutcome,
    GradeRequest,
    JudgeClient,
    PluginHost,
    RunContext,
    Selection,
    TrialItem,
    TrialOptions,
    invoke,
)
from vally_backend_local import remove_tree
from vally_backend_ray.addresses import check_answers
from vally_backend_ray.bridge_process import BridgeProcess
from vally_backend_ray.codes import LOST, NOT_BUNDLED
from vally_backend_ray.config import RayArgs
from vally_backend_ray.connecting import connected
from vally_backend_ray.hosts import LocalPlugins, loaded_versions, local_plugins
from vally_backend_ray.judge_service import JudgeService, judge_facts
from vally_backend_ray.messages import (
    ClusterSettings,
    Delivery,
    GradeOrder,
    HostPlan,
    Order,
    TrialOrder,
    WorkerSettings,
)
from vally_backend_ray.outcome import RemoteOutcome, arrived, lost, put_in_place
from vally_backend_ray.pickling import packed, unpacked
from vally_backend_ray.refusals import check_installation, check_item, checked_inner
from vally_backend_ray.shipping import Shipping, in_thread
from vally_backend_ray.spool import RUN

LOCAL_WORKERS = 2
CANCEL_S = 60.0


@dataclass(slots=True)
class _Open:
    """An attempt that is under way."""

    options: TrialOptions
    judge: JudgeService | None


class RayBackend:
    """See `Backend`."""

    def __init__(self) -> None:
        self._args = RayArgs()
        self._context: RunContext
        self._process: BridgeProcess | None = None
        self._shipping: Shipping
        self._open: dict[str, _Open] = {}
        self._unrecorded: dict[str, list[str]] = {}
        self.facts: Mapping[str, str] = {}
        """What `run-manifest.json` says of the cluster."""

    async def preflight(self, config: RayArgs, context: RunContext) -> str:
        """Tell what can be told without starting a cluster or connecting to one. Raises `BackendError`."""
        check_installation()
        host = context.host or PluginHost()
        inner = checked_inner(host, config, context)
        if config.address is None:
            probe = getattr(host.create(inner), "preflight", None)
            settings = host.parse_config(inner, config.inner_args)
            told = None if probe is None else await invoke(probe, settings, context, blocking=inner.blocking)
            return "; ".join(filter(None, ("Ray is installed", told)))
        await anyio.to_thread.run_sync(check_answers, config.address)
        return f"Ray is installed; whether '{config.address}' lets this machine in shows with a run"

    async def prepare(self, args: Mapping[str, str | list[str]] | RayArgs, context: RunContext) -> None:
        """Start or find the cluster and send it what trials need. Raises `BackendError`."""
        check_installation()
        self._args = args if isinstance(args, RayArgs) else RayArgs.model_validate(dict(args))
        self._context = context
        host = context.host or PluginHost()
        checked_inner(host, self._args, context)
        plugins = local_plugins(host)
        process = BridgeProcess(context.process_env, self._on_note, local=self._args.address is None)
        self._process = process
        try:
            await self._start(process, host, plugins)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.shutdown()
            raise

    async def _start(self, process: BridgeProcess, host: PluginHost, plugins: LocalPlugins) -> None:
        self._shipping = shipping = Shipping(process, self._context.process_env)
        bundles, plan = await shipping.prepared(self._context.plan, plugins)
        await process.open()
        self.facts = await connected(process, self._cluster_settings(process, host, plan), self._context)
        for bundle in bundles:
            await shipping.send(bundle)
        await shipping.add_host(host, plan)
        await process.link.call("start")

    def _cluster_settings(self, process: BridgeProcess, host: PluginHost, plan: HostPlan) -> ClusterSettings:
        args, context = self._args, self._context
        worker = WorkerSettings(
            run_id=context.run_id,
            inner=args.inner,
            inner_args=args.inner_args,
            slots=args.slots,
            environment=dict(context.process_env) if args.address is None else None,
            extra={name: context.process_env[name] for name in args.env if name in context.process_env},
            cache_dir=context.cache_dir if args.address is None else None,
            project_root=context.project_root,
            versions=loaded_versions(host),
            items=context.items,
        )
        return ClusterSettings(
            address=args.address,
            directory=process.directory,
            workers=args.workers or self._default_workers(),
            slots=args.slots,
            cpus=args.cpus,
            memory=args.memory,
            resources=dict(args.resources),
            max_losses=args.max_losses,
            worker=packed(worker),
            host=plan,
        )

    def _default_workers(self) -> int:
        """As many as there can be trials at once, on a cluster; two on this machine."""
        if self._args.address is None:
            return LOCAL_WORKERS
        return max(1, math.ceil(self._context.workers / self._args.slots))

    async def run_trial(self, item: TrialItem, options: TrialOptions) -> RemoteOutcome:
        """Have one item run and graded; raises `BackendError` only when there is no cluster."""
        process = self._usable()
        try:
            check_item(item)
            order = await self._shipping.order(item, options.host, packed(_trial_order(item, options)))
        except BackendError as error:
            info = ErrorInfo(message=error.message, code=error.code or NOT_BUNDLED, phase="preparing")
            return RemoteOutcome("error", error=info, backend_name=self._name)
        self._open[order.attempt] = _Open(options, self._judge(order, options.judge))
        self._unrecorded.setdefault(item.item_id, []).append(order.attempt)

        def stop(reason: str) -> None:
            process.link.tell("stop", order.attempt, reason)

        try:
            with options.stop.heard_by(stop):
                delivery: Delivery = await self._delivered("run", order)
            return await self._outcome(delivery, order, options)
        finally:
            await self._ended(order)

    async def _delivered(self, method: str, order: Order) -> Delivery:
        link = self._usable().link
        try:
            delivery: Delivery = await link.call(method, order)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_S):
                await link.call("cancel", order.attempt)
                await link.call("clean_up", order.attempt)
            raise
        return delivery

    async def _outcome(self, delivery: Delivery, order: Order, options: TrialOptions) -> RemoteOutcome:
        # What was told of the trial came over the same socket before, and only has to be looked at.
        await asyncio.sleep(0)
        if delivery.body is None:
            return lost(delivery.losses, self._name)
        outcome = arrived(await in_thread(unpacked, delivery.body), delivery.losses)
        outcome.backend_name = outcome.backend_name or self._name
        base = options.run_dir or options.output_dir
        if base is not None and delivery.files:
            try:
                await in_thread(put_in_place, order.directory / RUN, base, options.output_dir, options.redactor)
            except OSError as error:
                outcome.warnings += (f"files of the trial were not written: {error.strerror or error}",)
        outcome.clean = partial(self._clean_up, order.attempt)
        outcome.export = partial(self._export, order.attempt)
        return outcome

    async def _ended(self, order: Order) -> None:
        done = self._open.pop(order.attempt, None)
        with anyio.CancelScope(shield=True):
            if done is not None and done.judge is not None:
                await done.judge.close()
            if order.directory.exists():
                await in_thread(remove_tree, order.directory)

    async def _clean_up(self, attempt: str) -> Sequence[str]:
        try:
            warnings: Sequence[str] = await self._usable().link.call("clean_up", attempt)
        except BackendError as error:
            return (error.message,)
        return warnings

    async def _export(self, attempt: str, selection: Selection, target: Path) -> ExportedFiles:
        exported: ExportedFiles = await self._usable().link.call("export", attempt, packed(selection), target)
        return exported

    async def recorded(self, item_id: str) -> None:
        """The results of an item are on disk, so workers need not keep them."""
        attempts = self._unrecorded.pop(item_id, None)
        if attempts and self._process is not None:
            self._process.link.tell("forget", attempts)

    async def grade_trial(self, request: GradeRequest) -> GradeOutcome:
        """Grade a recorded trajectory on a worker that can see its workspace."""
        self._usable()
        body = GradeOrder(
            item=request.item,
            trajectory=request.trajectory,
            work_dir=request.work_dir,
            run_dir=request.run_dir,
            diff_file=request.diff_file,
            judge=judge_facts(request.options.judge),
        )
        try:
            order = await self._shipping.order(request.item, request.options.host, packed(body))
        except BackendError as error:
            return GradeOutcome(
                grade=None, error=ErrorInfo(message=error.message, code=error.code or NOT_BUNDLED, phase="grading")
            )
        self._open[order.attempt] = _Open(request.options, self._judge(order, request.options.judge))
        try:
            delivery = await self._delivered("grade", order)
        finally:
            await self._ended(order)
        if delivery.body is None:
            info = ErrorInfo(message=delivery.losses[-1], code=LOST, retryable=True, phase="grading")
            return GradeOutcome(grade=None, error=info)
        outcome: GradeOutcome = unpacked(delivery.body)
        return outcome

    async def shutdown(self) -> None:
        """End workers, and the cluster when it was started here; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        for warning in await process.close():
            self._context.on_warning(f"--backend ray: {warning}")

    def _judge(self, order: Order, judge: JudgeClient | None) -> JudgeService | None:
        return None if judge is None else JudgeService(order.attempt, judge, self._usable().link)

    def _on_note(self, name: str, told: Any) -> None:
        if name == "lost":
            for attempt in told:
                opened = self._open.get(attempt)
                if opened is not None and opened.judge is not None:
                    opened.judge.cancel_all()
            return
        for kind, attempt, value in unpacked(told):
            if kind == "warning":
                self._context.on_warning(value)
            elif attempt in self._open:
                self._hear(self._open[attempt], kind, value)

    def _hear(self, opened: _Open, kind: str, value: Any) -> None:
        if kind == "phase":
            opened.options.on_phase(*value)
        elif kind == "event":
            opened.options.on_event(value)
        elif opened.judge is not None and kind == "judge":
            opened.judge.ask(value)
        elif opened.judge is not None and kind == "judge-cancel":
            opened.judge.cancel(value)

    @property
    def _name(self) -> str:
        return f"ray/{self._args.inner}"

    def _usable(self) -> BridgeProcess:
        if self._process is None:
            raise BackendError("the backend is not prepared or was shut down", code="backend-unavailable")
        return self._process


def _trial_order(item: TrialItem, options: TrialOptions) -> TrialOrder:
    return TrialOrder(
        item=replace(item, experiment=None),
        output_dir=options.output_dir,
        run_dir=options.run_dir,
        session_log=options.session_log,
        skip_grade=options.skip_grade,
        shutdown_timeout_s=options.shutdown_timeout_s,
        wants_events=options.wants_events,
        judge=judge_facts(options.judge),
    )
