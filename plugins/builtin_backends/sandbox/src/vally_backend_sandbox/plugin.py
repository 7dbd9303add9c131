"""Names of what this distribution provides."""

from __future__ import annotations

from collections.abc import Iterator

from vally import BackendSpec, hookimpl

vally_api = 1


@hookimpl
def vally_backends() -> Iterator[BackendSpec]:
    """Yield the backend that confines processes."""
    yield BackendSpec(
        name="sandbox",
        summary="trials on this Linux machine, their processes confined by bubblewrap",
        factory="vally_backend_sandbox.backend:SandboxBackend",
        config="vally_backend_sandbox.config:SandboxArgs",
        isolates=True,
    )
