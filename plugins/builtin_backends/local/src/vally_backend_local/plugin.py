"""Names of what this distribution provides."""

from __future__ import annotations

from collections.abc import Iterator

from vally import BackendSpec, hookimpl

vally_api = 1


@hookimpl
def vally_backends() -> Iterator[BackendSpec]:
    """Yield the backend of this machine."""
    yield BackendSpec(
        name="local",
        summary="trials on this machine, each in a workspace of its own",
        factory="vally_backend_local.backend:LocalBackend",
        config="vally_backend_local.config:LocalArgs",
    )
