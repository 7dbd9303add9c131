"""Where MCP servers start."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import McpServer
from vally_backend_local.mcp_servers import resolve_servers


@pytest.fixture
def bases(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in ("spec", "work", "workspace")}
    for path in found.values():
        path.mkdir()
    return found


def resolve(bases: dict[str, Path], **fields: object) -> McpServer:
    facts: dict[str, object] = {"name": "db", "type": "stdio", "base_dir": bases["spec"], **fields}
    server = McpServer(**facts)  # type: ignore[arg-type]
    found = resolve_servers(
        {"db": server}, spec_dir=bases["spec"], work_dir=bases["work"], workspace=bases["workspace"]
    )
    return found["db"]


@pytest.mark.parametrize("where", ["spec", "work", "workspace"])
def test_the_first_base_that_has_the_command(bases: dict[str, Path], where: str) -> None:
    (bases[where] / "bin").mkdir()
    (bases[where] / "bin" / "server").touch()
    found = resolve(bases, command="bin/server", args=("bin/other",))
    assert (found.cwd, found.command) == (str(bases[where]), str(bases[where] / "bin" / "server"))
    assert found.args == ("bin/other",)


def test_the_order_of_the_bases(bases: dict[str, Path]) -> None:
    for path in bases.values():
        (path / "server").touch()
    assert resolve(bases, command="./server").cwd == str(bases["spec"])


@pytest.mark.parametrize("where", ["spec", "work", "workspace"])
def test_the_first_base_that_has_the_argument(bases: dict[str, Path], where: str) -> None:
    (bases[where] / "lib").mkdir()
    (bases[where] / "lib" / "main.js").touch()
    found = resolve(bases, command="node", args=("--flag=a/b", "/abs/path", "lib/main.js", "other/path"))
    assert (found.cwd, found.command) == (str(bases[where]), "node")


@pytest.mark.parametrize("fields", [{"command": "node"}, {"command": "npx", "args": ("@scope/server",)}])
def test_else_the_first_base(bases: dict[str, Path], fields: dict[str, object]) -> None:
    assert resolve(bases, **fields).cwd == str(bases["spec"])


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [("tools", "{spec}/tools"), ("${workspace}", "{workspace}"), ("${workspace}/x", "{workspace}/x")],
)
def test_a_given_directory_wins(bases: dict[str, Path], cwd: str, expected: str) -> None:
    (bases["work"] / "server").touch()
    found = resolve(bases, command="./server", cwd=cwd)
    directory = expected.format(**bases)
    assert (found.cwd, found.command) == (directory, f"{directory}/server")


def test_an_absolute_command_stays(bases: dict[str, Path]) -> None:
    assert resolve(bases, command="/bin/cat").command == "/bin/cat"


def test_servers_on_the_network_stay(bases: dict[str, Path]) -> None:
    found = resolve(bases, type="http", url="http://localhost/x")
    assert (found.cwd, found.command, found.url) == (None, None, "http://localhost/x")
