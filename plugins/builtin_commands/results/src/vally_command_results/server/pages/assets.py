"""Style sheet and script of the pages, under names that hold a hash of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from vally_command_results.query.errors import not_found

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FILES = ("style.css", "script.js", "icon.svg")


@dataclass(frozen=True, slots=True)
class Assets:
    """The files by the names they are served under, and those names by the names they have here."""

    bodies: Mapping[str, bytes]
    names: Mapping[str, str]

    @property
    def version(self) -> str:
        """Changes when one of them does."""
        return "".join(sorted(self.bodies))

    def url(self, name: str) -> str:
        """Where a file is served."""
        return f"/static/{self.names[name]}"

    def endpoint(self, request: Request) -> Response:
        """Serve one."""
        name = request.path_params["name"]
        body = self.bodies.get(name)
        if body is None:
            raise not_found(f"nothing is served at {request.url.path}")
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(body, headers=headers, media_type=KINDS[name.rpartition(".")[2]])


def load_assets() -> Assets:
    """Read them from the package."""
    directory = files("vally_command_results.server") / "static"
    bodies, names = {}, {}
    for file in _FILES:
        body = (directory / file).read_bytes()
        stem, _, kind = file.rpartition(".")
        served = f"{stem}-{hashlib.sha256(body).hexdigest()[:12]}.{kind}"
        bodies[served], names[file] = body, served
    return Assets(bodies, names)
