"""The endpoints of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel
from sqlalchemy import Connection, func, select
from starlette.responses import Response

from vally_command_results.query import comparing, graders, matrix, outcomes, runs, summaries, trajectories, trends
from vally_command_results.query.errors import QueryError
from vally_command_results.query.metrics import METRICS
from vally_command_results.server import model_parts, models, params
from vally_command_results.server import table_models as tables
from vally_command_results.server.answers import etag_of, is_current, json_answer, not_modified
from vally_command_results.server.artifacts import artifact_file, artifact_root, list_artifacts
from vally_command_results.server.site import Site
from vally_command_results.store import schema

MAX_RAW = 64 * 1024 * 1024
E = TypeVar("E", bound=Callable[..., Response])
Ask = Callable[[Connection], object]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 hexadecimal digits")]
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": model_parts.Error, "description": text}
    for status, text in (
        (400, "a parameter or the cursor cannot be used"),
        (403, "the host name is not allowed"),
        (404, "there is none"),
        (405, "only GET and HEAD are allowed"),
        (413, "too large"),
        (500, "internal error"),
        (503, "overloaded"),
    )
}
NO_QUERY = Annotated[params.NoParameters, Query()]


class Api:
    """Makes the router of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.router = APIRouter(prefix="/api", responses=ERRORS)
        self._runs()
        self._outcomes()
        self._across()
        self._service()

    def answer(self, request: Request, ask: Ask) -> Response:
        """What the store answers, unless the client has it already."""
        params.check_repeats([name for name, _ in request.query_params.multi_items()])
        self._site.refresh()
        with self._site.store.reading() as connection:
            version = self._site.store.data_version(connection)
            etag = etag_of(version, self._site.version, request.url.path, request.url.query)
            if is_current(request, etag):
                return not_modified(etag)
            document = ask(connection)
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if isinstance(document, Response):
            document.headers.update(headers)
            return document
        return json_answer(document, headers=headers)

    def _get(self, path: str, model: type[BaseModel], summary: str) -> Callable[[E], E]:
        # The class is for the document; answers are made by hand, which costs less.
        return self.router.get(path, response_model=model, summary=summary, response_class=JSONResponse)

    def _file(self, path: str, summary: str, *kinds: str) -> Callable[[E], E]:
        responses: dict[int | str, dict[str, Any]] = {200: {"content": {kind: {} for kind in kinds}}}
        return self.router.get(path, summary=summary, response_class=Response, responses=responses)

    def _runs(self) -> None:
        @self._get("/runs", models.Runs, "Runs")
        def list_runs(request: Request, query: Annotated[params.Runs, Query()]) -> Response:
            return self.answer(request, lambda c: runs.list_runs(c, query.filter(), query.request, query.sort))

        @self._get("/runs/{run_id}", models.RunDetail, "One run")
        def run_detail(request: Request, run_id: Id, _: NO_QUERY) -> Response:
            return self.answer(request, lambda c: runs.run_detail(c, run_id))

        @self._get("/runs/{run_id}/outcomes", models.Outcomes, "Outcomes of a run")
        def run_outcomes(request: Request, run_id: Id, query: Annotated[params.RunOutcomes, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                runs.require_run(connection, run_id)
                return outcomes.list_outcomes(connection, query.filter(run_id), query.request, query.sort)

            return self.answer(request, ask)

        @self._get("/runs/{run_id}/matrix", tables.Matrix, "The score matrix of a run")
        def run_matrix(request: Request, run_id: Id, query: Annotated[params.Matrix, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                metric, rows, columns = query.metric, query.rows, query.columns
                return matrix.matrix(
                    connection, run_id, metric=metric, rows=rows, columns=columns, chosen=query.filter()
                )

            return self.answer(request, ask)

        @self._get("/runs/{run_id}/ranking", tables.Ranking, "Models of a run, the best first")
        def run_ranking(request: Request, run_id: Id, _: NO_QUERY) -> Response:
            return self.answer(request, lambda c: summaries.ranking(c, run_id))

        @self._get("/runs/{run_id}/graders", tables.Graders, "Graders of a run, those that fail most first")
        def run_graders(request: Request, run_id: Id, query: Annotated[params.Graders, Query()]) -> Response:
            return self.answer(request, lambda c: graders.graders_of_run(c, run_id, query.filter(), query.depth))

        @self._get("/runs/{run_id}/tools", tables.Tools, "Tools that agents called in a run")
        def run_tools(request: Request, run_id: Id, query: Annotated[params.Some, Query()]) -> Response:
            return self.answer(request, lambda c: summaries.tools(c, run_id, query.filter()))

        @self._get("/runs/{run_id}/distribution", tables.Distribution, "A histogram of a run")
        def run_distribution(request: Request, run_id: Id, query: Annotated[params.Distribution, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                metric, bins, group_by = query.metric, query.bins, query.group_by
                return summaries.distribution(connection, run_id, metric=metric, bins=bins, group_by=group_by)

            return self.answer(request, ask)

    def _outcomes(self) -> None:
        @self._get("/outcomes", models.Outcomes, "Outcomes of all runs")
        def list_outcomes(request: Request, query: Annotated[params.Outcomes, Query()]) -> Response:
            return self.answer(request, lambda c: outcomes.list_outcomes(c, query.filter(), query.request, query.sort))

        @self._get("/outcomes/{outcome_id}", models.OutcomeDetail, "One outcome")
        def outcome_detail(request: Request, outcome_id: Id, _: NO_QUERY) -> Response:
            def ask(connection: Connection) -> object:
                count = len(list_artifacts(self._artifacts(connection, outcome_id)[0])["items"])
                return outcomes.outcome_detail(connection, outcome_id, artifact_count=count)

            return self.answer(request, ask)

        @self._get("/outcomes/{outcome_id}/trajectory", models.Trajectory, "The trajectory of an outcome")
        def outcome_trajectory(request: Request, outcome_id: Id, query: Annotated[params.Events, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                types, turns, agents = query.type, query.turn, query.agent_id
                page = query.request
                return trajectories.trajectory_page(
                    connection, outcome_id, page, types=types, turns=turns, agents=agents
                )

            return self.answer(request, ask)

        @self._file("/outcomes/{outcome_id}/raw", "The record as it was", "application/json")
        def outcome_raw(request: Request, outcome_id: Id, _: NO_QUERY) -> Response:
            def ask(connection: Connection) -> object:
                outcomes.require_outcome(connection, outcome_id)
                line = outcomes.raw_line(connection, outcome_id)
                if len(line) > MAX_RAW:
                    raise QueryError("too_large", 413, f"the record is larger than {MAX_RAW // 1024**2} MiB")
                return Response(line, media_type="application/json")

            return self.answer(request, ask)

        @self._get("/outcomes/{outcome_id}/diff", models.Diff, "What an agent changed")
        def outcome_diff(request: Request, outcome_id: Id, query: Annotated[params.DiffTurn, Query()]) -> Response:
            return self.answer(request, lambda c: trajectories.diff_document(c, outcome_id, query.turn))

        @self._get("/outcomes/{outcome_id}/tools", models.ToolCalls, "The tool calls of an outcome")
        def outcome_tools(request: Request, outcome_id: Id, query: Annotated[params.Page, Query()]) -> Response:
            return self.answer(request, lambda c: outcomes.list_calls(c, outcome_id, query.request))

        @self._get("/outcomes/{outcome_id}/artifacts", models.Artifacts, "The files of an outcome")
        def outcome_artifacts(request: Request, outcome_id: Id, _: NO_QUERY) -> Response:
            self._site.refresh()
            with self._site.store.reading() as connection:
                root, _known = self._artifacts(connection, outcome_id)
            document = list_artifacts(root)
            # The files are no part of the store, so its version tells nothing of them.
            etag = etag_of(self._site.version, request.url.path, document)
            if is_current(request, etag):
                return not_modified(etag)
            return json_answer(document, headers={"ETag": etag, "Cache-Control": "no-cache"})

        @self._file(
            "/outcomes/{outcome_id}/artifacts/{path:path}", "One file of an outcome", "application/octet-stream"
        )
        def outcome_artifact(request: Request, outcome_id: Id, path: str, _: NO_QUERY) -> Response:
            with self._site.store.reading() as connection:
                root, known = self._artifacts(connection, outcome_id)
            file = artifact_file(root, known, path)
            status = file.stat()
            etag = etag_of(status.st_size, status.st_mtime_ns)
            if is_current(request, etag):
                return not_modified(etag)
            headers = {"ETag": etag, "Cache-Control": "no-cache", "Content-Disposition": "attachment"}
            return FileResponse(file, media_type="application/octet-stream", headers=headers)

    def _artifacts(self, connection: Connection, outcome_id: str) -> tuple[Any, bool]:
        row = outcomes.require_outcome(connection, outcome_id)
        source = connection.scalar(select(schema.runs.c.source).where(schema.runs.c.id == row.run_id))
        return artifact_root(self._site, str(source), row.artifact_dir), row.artifact_dir is not None

    def _across(self) -> None:
        @self._get("/compare", tables.Comparison, "Runs side by side, stimulus by stimulus")
        def compare(request: Request, query: Annotated[params.Compare, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                metric, names, changed = query.metric, query.eval_name, query.only_changed
                return comparing.compare_runs(
                    connection, query.runs, metric=metric, eval_names=names, only_changed=changed
                )

            return self.answer(request, ask)

        @self._get("/trends", tables.Trends, "A metric over runs")
        def list_trends(request: Request, query: Annotated[params.Trends, Query()]) -> Response:
            def ask(connection: Connection) -> object:
                metric, group_by, limit = query.metric, query.group_by, query.limit
                return trends.trends(connection, *query.filters(), metric=metric, group_by=group_by, limit=limit)

            return self.answer(request, ask)

        @self._get("/graders", tables.GradersAcross, "Graders of all runs, those that fail most first")
        def list_graders(request: Request, query: Annotated[params.GradersAcross, Query()]) -> Response:
            return self.answer(request, lambda c: graders.graders_of_runs(c, query.filter(), query.limit))

        @self._get("/comparisons", tables.JudgedComparisons, "Comparisons that judges made")
        def list_comparisons(request: Request, query: Annotated[params.Comparisons, Query()]) -> Response:
            return self.answer(request, lambda c: trends.list_comparisons(c, query.group, query.request))

        @self._get("/comparisons/{comparison_id}", tables.JudgedComparisonDetail, "One comparison of a judge")
        def comparison(request: Request, comparison_id: Id, _: NO_QUERY) -> Response:
            return self.answer(request, lambda c: trends.comparison_detail(c, comparison_id))

    def _service(self) -> None:
        @self._get("/metrics", tables.Metrics, "The metrics")
        def metrics(request: Request, _: NO_QUERY) -> Response:
            return self.answer(request, lambda _: {"metrics": [metric.document() for metric in METRICS.values()]})

        @self._get("/facets", tables.Facets, "Values for filter controls")
        def facets(request: Request, _: NO_QUERY) -> Response:
            return self.answer(request, runs.facets)

        @self._get("/health", tables.Health, "How the server is")
        def health(_: NO_QUERY) -> Response:
            site = self._site
            site.refresh()
            with site.store.reading() as connection:
                count = connection.scalar(select(func.count()).select_from(schema.runs))
                version = site.store.data_version(connection)
            document = {
                "status": "ok",
                "version": site.version,
                "mode": site.mode,
                "runCount": count,
                "dataVersion": version,
                "schemaVersion": site.schema_version,
            }
            return json_answer(document, headers={"Cache-Control": "no-store"})
