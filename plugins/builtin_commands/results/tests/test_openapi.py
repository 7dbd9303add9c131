"""The OpenAPI document is true: a generator of requests finds nothing that it does not say."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from vally_command_results.server.app import make_api, make_app, openapi_document
from vally_command_results.server.guard import AllowedHosts
from vally_command_results.server.site import Site
from vally_command_results.store.opening import open_memory


def documented() -> dict[str, Any]:
    with closing(open_memory()) as store:
        return openapi_document(make_api(Site(store, "store")))


def test_every_operation_names_its_errors() -> None:
    for path, operations in documented()["paths"].items():
        assert list(operations) == ["get"], path
        assert {"200", "400", "403", "404", "405", "413", "500", "503"} <= set(operations["get"]["responses"])
        assert operations["get"]["summary"]


def test_the_document_is_served(kit: Any) -> None:
    served = kit.client().get("/api/openapi.json").json()
    assert (served["openapi"], served) == ("3.1.0", documented())


@pytest.mark.heavy
@pytest.mark.parametrize("path", sorted(documented()["paths"]))
def test_generated_requests_find_nothing(kit: Any, path: str) -> None:
    import schemathesis
    from schemathesis.checks import CHECKS

    kit.run()
    kit.ingest()
    app = make_app(Site(kit.store, "store"), hosts=AllowedHosts.of("localhost", ()), pages=False)
    schema = schemathesis.openapi.from_dict(documented()).include(path=path)
    # A cursor is opaque: a text may be of the right type and yet no cursor. Texts have a greatest length in bytes.
    excluded = [CHECKS.get_one("positive_data_acceptance")]
    for result in schema.get_all_operations():
        strategy = result.ok().as_strategy()

        @given(case=strategy)
        @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def ask(case: Any) -> None:
            answer = case.call(app=app, base_url="http://localhost")
            case.validate_response(answer, excluded_checks=excluded)

        ask()
