"""What cannot be done elsewhere is refused before anything starts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec

from vally import BackendError, BackendSpec, ConfigInvalid, ExecutorSpec, Plan, PluginHost, RunContext, TrialItem
from vally_backend_ray.codes import UNAVAILABLE, UNSUPPORTED
from vally_backend_ray.config import RayArgs

INSTALL = "pip install 'vally[ray]'"


def check_installation() -> None:
    """Raise `BackendError` where no cluster can be used."""
    if sys.platform == "win32":
        raise BackendError("it needs Linux or macOS", code=UNAVAILABLE)
    if find_spec("ray") is None:
        raise BackendError("Ray is not installed", code=UNAVAILABLE, hints=(INSTALL,))


def check_inner_args(host: PluginHost, inner: BackendSpec, args: Mapping[str, str | list[str]]) -> None:
    """Raise `BackendError` when the inner backend does not take its arguments."""
    try:
        host.parse_config(inner, args)
    except ConfigInvalid as error:
        model = host.config_model(inner)
        fields = model.model_fields if model is not None else {}
        known = sorted(field.alias or name for name, field in fields.items())
        raise BackendError(
            f"inner-arg: backend '{inner.name}': {error.problems[0]}",
            hints=(*error.hints, f"arguments: {', '.join(known) or 'none'}"),
        ) from None


def checked_inner(host: PluginHost, args: RayArgs, context: RunContext) -> BackendSpec:
    """The backend inside of workers. Raises `BackendError` when it, or a worker, could not do what is asked."""
    inner = host.require("backend", args.inner)
    assert isinstance(inner, BackendSpec)
    check_inner_args(host, inner, args.inner_args)
    if context.plan is not None:
        check_plan(context.plan, host, inner)
    return inner


def check_plan(plan: Plan, host: PluginHost, inner: BackendSpec) -> None:
    """Raise `BackendError` for the first thing of a plan that workers could not do."""
    options = plan.options
    if options.in_place:
        raise _refused("--in-place")
    if options.workspace is not None:
        raise _refused("--workspace")
    for evaluation in plan.evals:
        record = host.get("executor", evaluation.executor.name)
        if not isinstance(record, ExecutorSpec):
            raise BackendError(
                f"executor '{evaluation.executor.name}' belongs to this command and runs in its process "
                "only; use --backend local",
                code=UNSUPPORTED,
            )
        if inner.isolates and not record.capabilities.isolation:
            raise BackendError(
                f"executor '{record.name}' does not support isolation, which backend '{inner.name}' needs",
                code=UNSUPPORTED,
            )
    for item in plan.items():
        if item.trial_index == 0:
            check_item(item)


def check_item(item: TrialItem) -> None:
    """Raise `BackendError` when an item is bound to this machine."""
    workspace = item.workspace
    if workspace.path is not None:
        raise _refused("--work-dir" if workspace.in_place else "--workspace")
    source = item.stimulus.merged_environment.git
    if source is not None and source.url is not None and source.url.startswith("file:"):
        raise BackendError(
            f"stimulus '{item.stimulus.name}': the repository '{source.url}' lies on this machine; "
            "name its directory without 'file://', so that it can travel to the workers",
            code=UNSUPPORTED,
        )


def _refused(option: str) -> BackendError:
    return BackendError(
        f"{option} names a directory of this machine, but trials run on others; "
        "leave it out, keep files with 'artifacts', or use --backend local",
        code=UNSUPPORTED,
    )
