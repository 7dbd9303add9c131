"""The records of this plugin."""

from __future__ import annotations

from collections.abc import Iterator

from vally import GraderSpec, hookimpl

vally_api = 1
_PACKAGE = "vally_grader_process"


@hookimpl
def vally_graders() -> Iterator[GraderSpec]:
    """One record per keyword."""
    yield GraderSpec(
        name="run-command",
        summary="a command in the workspace exits as expected and prints the expected text",
        factory=f"{_PACKAGE}.run_command:RunCommand",
        config=f"{_PACKAGE}.run_command_config:RunCommandConfig",
        determinism="complex-static",
        requires_workspace=True,
        hints=(
            "pytest: no installed plugin scores single tests; 'run-command' runs them all and looks at the exit code",
        ),
    )
    yield GraderSpec(
        name="program",
        summary="an external program decides on the whole trajectory",
        factory=f"{_PACKAGE}.program:Program",
        config=f"{_PACKAGE}.program_config:ProgramConfig",
        requires_workspace=True,
        oracle="either",
        multiline=True,
    )
