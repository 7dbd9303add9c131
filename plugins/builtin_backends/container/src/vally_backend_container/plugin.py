"""Names of what this distribution provides."""

from __future__ import annotations

from collections.abc import Iterator

from vally import BackendSpec, hookimpl

vally_api = 1
_ENGINES = {
    "container": "trials in containers of the engine that answers first, podman or docker",
    "docker": "trials in containers of docker",
    "podman": "trials in containers of podman",
}


@hookimpl
def vally_backends() -> Iterator[BackendSpec]:
    """Yield one backend for each way to choose an engine."""
    for name, summary in _ENGINES.items():
        yield BackendSpec(
            name=name,
            summary=summary,
            factory=f"vally_backend_container.backend:{name}",
            config="vally_backend_container.config:ContainerArgs",
            isolates=True,
        )
