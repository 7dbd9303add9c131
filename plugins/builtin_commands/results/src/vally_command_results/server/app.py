"""The application: API, pages, and what stands around both."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from vally import __version__
from vally_command_results.query.errors import QueryError
from vally_command_results.server.answers import error_answer, json_answer, problems_of
from vally_command_results.server.api import Api
from vally_command_results.server.guard import AllowedHosts, Guard
from vally_command_results.server.site import Site

GZIP_BYTES = 1024
_LOG = logging.getLogger("vally.serve")
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 503: "unavailable"}


def make_app(site: Site, *, hosts: AllowedHosts, cors: bool = False, pages: bool = True) -> ASGIApp:
    """The application of a site; without `pages` only the API."""
    app = make_api(site, pages=pages)
    error_page = _plain_page
    if pages:
        from vally_command_results.server.pages import page_routes
        from vally_command_results.server.pages.errors import error_page as designed

        routes: Sequence[BaseRoute] = page_routes(site)
        app.router.routes.extend(routes)
        error_page = designed
    app.add_middleware(GZipMiddleware, minimum_size=GZIP_BYTES)
    return Guard(app, hosts=hosts, cors=cors, error_page=error_page)


def make_api(site: Site, *, pages: bool = False) -> FastAPI:
    """The endpoints of the API; with `pages`, errors outside of it are pages."""
    app = FastAPI(
        title="vally results",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _handle_errors(app, pages=pages)
    app.include_router(Api(site).router)

    @app.get("/api/openapi.json", include_in_schema=False)
    def openapi() -> Response:
        return json_answer(openapi_document(app), headers={"Cache-Control": "no-cache"})

    return app


def _plain_page(status: int, code: str, message: str) -> str:
    from html import escape

    head = f"<!doctype html><html lang=en><title>{status}</title>"
    return f"{head}<h1>{status} {escape(code)}</h1><p>{escape(message)}</p></html>"


def _handle_errors(app: FastAPI, *, pages: bool) -> None:
    def answer(request: Request, error: QueryError) -> Response:
        if request.url.path.startswith("/api") or not pages:
            return error_answer(error)
        from vally_command_results.server.pages.errors import error_page

        return HTMLResponse(error_page(error.status, error.code, error.message), error.status)

    @app.exception_handler(QueryError)
    async def query_error(request: Request, error: QueryError) -> Response:
        return answer(request, error)

    @app.exception_handler(RequestValidationError)
    async def bad_parameters(request: Request, error: RequestValidationError) -> Response:
        errors = list(error.errors())
        if any(item["loc"][0] == "path" for item in errors):
            return answer(request, QueryError("not_found", 404, "there is nothing of that id"))
        return answer(request, problems_of(errors))

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "not_found")
        return answer(request, QueryError(code, error.status_code, f"nothing is served at {request.url.path}"))

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        request_id = secrets.token_hex(8)
        _LOG.error("request %s failed", request_id, exc_info=error)
        return answer(request, QueryError("internal", 500, f"internal error; request id {request_id}"))

    @app.exception_handler(OperationalError)
    async def locked(request: Request, _: OperationalError) -> Response:
        return answer(request, QueryError("unavailable", 503, "the store cannot be read just now"))


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: what the parameters and answers of every endpoint are."""
    if app.openapi_schema is None:
        from fastapi.openapi.utils import get_openapi

        document = get_openapi(title=app.title, version=app.version, routes=app.routes, openapi_version="3.1.0")
        for path in document["paths"].values():
            for operation in path.values():
                # Malformed parameters are answered with 400, in the form of all errors.
                operation["responses"].pop("422", None)
        schemas = document.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema
