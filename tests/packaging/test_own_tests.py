"""Each distribution passes its own tests with nothing installed but what it requires.

When this holds for every one, removing any of them leaves the tests of all others green.
"""

from __future__ import annotations

import pytest
from checkout import KERNEL, PLUGINS, ROOT, Member
from environments import Environment, Wheels, run

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("own tests")]


def test_the_kernel_passes_its_tests_alone(kernel_only: Environment) -> None:
    pass_own_tests(kernel_only, KERNEL)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_a_distribution_passes_its_tests_with_no_other(
    plugin: Member, kernel_only: Environment, wheels: Wheels
) -> None:
    added = [wheel for wheel in wheels.closure(plugin) if wheel != wheels.of("vally-kernel")]
    kernel_only.install(*added)
    try:
        pass_own_tests(kernel_only, plugin)
    finally:
        kernel_only.uninstall(*(wheel.name.split("-")[0] for wheel in added))


def pass_own_tests(environment: Environment, member: Member) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-m", "not heavy"]
    completed = run([environment.python, "-m", "pytest", *options, member.path / "tests"], ROOT)
    assert completed.returncode == 0, completed.stdout[-4000:] + completed.stderr[-2000:]
