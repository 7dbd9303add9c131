"""From a handler to a route: one connection and an ETag. Errors are left to the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from vally_command_results.server.answers import etag_of, is_current, not_modified
from vally_command_results.server.pages.rendering import Pages
from vally_command_results.server.site import Site

Handler = Callable[[Connection, Request, Site], "Response | tuple[str, Mapping[str, Any]]"]
"""Gives a template and its values, or a whole answer."""


def page_route(site: Site, pages: Pages, path: str, handler: Handler) -> Route:
    """The route of a page."""

    def endpoint(request: Request) -> Response:
        site.refresh()
        with site.store.reading() as connection:
            version = site.store.data_version(connection)
            etag = etag_of(version, site.version, pages.assets.version, request.url.path, request.url.query)
            if is_current(request, etag):
                return not_modified(etag)
            made = handler(connection, request, site)
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if isinstance(made, Response):
            made.headers.update(headers)
            return made
        template, values = made
        frame = {"path": request.url.path, "version": site.version, "mode": site.mode, "etag": etag}
        return HTMLResponse(pages.render(template, {**frame, **values}), headers=headers)

    return Route(path, endpoint, methods=["GET", "HEAD"])
