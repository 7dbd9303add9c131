"""Names of what this distribution provides."""

from __future__ import annotations

from collections.abc import Iterator

from vally import BackendSpec, hookimpl

vally_api = 1


@hookimpl
def vally_backends() -> Iterator[BackendSpec]:
    """Yield the backend of clusters."""
    yield BackendSpec(
        name="ray",
        summary="trials on the workers of a Ray cluster, or of one that is started on this machine",
        factory="vally_backend_ray.backend:RayBackend",
        config="vally_backend_ray.config:RayArgs",
        remote=True,
    )
