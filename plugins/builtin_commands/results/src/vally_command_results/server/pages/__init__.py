"""The pages of the dashboard, rendered here and readable without scripts."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from vally_command_results.server.site import Site


def page_routes(site: Site) -> list[BaseRoute]:
    """The routes of all pages and of what they load."""
    from vally_command_results.server.pages import across, compare, diff, outcomes, overview, runs, trial
    from vally_command_results.server.pages.answering import page_route
    from vally_command_results.server.pages.rendering import pages

    renderer = pages()
    handlers = {
        "/": runs.runs_page,
        "/runs/{run_id}": overview.overview_page,
        "/runs/{run_id}/outcomes": outcomes.outcomes_page,
        "/outcomes": outcomes.outcomes_page,
        "/outcomes/{outcome_id}": trial.trial_page,
        "/outcomes/{outcome_id}/diff": diff.diff_page,
        "/outcomes/{outcome_id}/text": trial.text_part,
        "/compare": compare.compare_page,
        "/compare/outcomes": compare.side_by_side_page,
        "/graders": across.graders_page,
        "/trends": across.trends_page,
        "/comparisons/{comparison_id}": across.comparison_page,
    }
    routes: list[BaseRoute] = [page_route(site, renderer, path, handler) for path, handler in handlers.items()]
    return [*routes, Route("/static/{name}", renderer.assets.endpoint, methods=["GET", "HEAD"])]
