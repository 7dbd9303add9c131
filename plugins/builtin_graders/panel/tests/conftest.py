from __future__ import annotations

import pytest

from vally import GraderSpec
from vally_grader_panel import plugin


@pytest.fixture(scope="session")
def record() -> GraderSpec:
    """The record of `panel`."""
    (found,) = plugin.vally_graders()
    return found
