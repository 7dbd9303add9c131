"""What of this machine is in a container."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vally import BackendError, Environment, McpServer
from vally.testing import ScriptedExecutor, stimulus, trial_item, trial_options
from vally_backend_container.config import ContainerArgs, Mount
from vally_backend_container.containers import Identity, Recipe, mounted
from vally_backend_container.engine import Engine
from vally_backend_container.mounts import IMAGES_OWN, Sights, distinct


class Installed(ScriptedExecutor):
    """An executor with an installation."""

    paths: tuple[Path, ...] = ()

    def host_paths(self, config: object) -> tuple[Path, ...]:
        return self.paths


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("project", "home/.tool/bin", "tmp", "cache", "workspace", "tools"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project" / "eval.yaml").write_text("name: e")
    return tmp_path


def sights(tree: Path, **args: Any) -> Sights:
    parsed = ContainerArgs.model_validate(args)
    return Sights(parsed, {"HOME": str(tree / "home")}, [tree / "tmp", tree / "cache"])


def agent(
    tree: Path, paths: tuple[Path, ...] = (), servers: dict[str, McpServer] | None = None, **args: Any
) -> set[Path]:
    """Where the agent finds what it needs."""
    executor = Installed()
    executor.paths = paths
    given = stimulus(environment=Environment(mcp_servers=servers or {}))
    made = sights(tree, **args).agent(trial_item(tree / "project", given), trial_options(executor, []))
    assert all(mount.read_only for mount in made)
    return {mount.target for mount in made}


def test_an_installation_is_shown(tree: Path) -> None:
    (tree / "link").symlink_to(tree / "home" / ".tool")
    assert agent(tree, (tree / "home" / ".tool",)) == {tree / "home" / ".tool"}
    assert agent(tree, (tree / "link",)) == {tree / "link", tree / "home" / ".tool"}


@pytest.mark.parametrize("name", ["project", "home", "tmp", "cache", "."])
def test_places_that_hold_secrets_are_no_installation(name: str, tree: Path) -> None:
    assert agent(tree, (tree / name,)) == set()


@pytest.mark.parametrize(
    "path", ["/", "/usr/bin", "/usr", "/bin", "/usr/local/bin", "/etc", "/bin/sh", "/no/such/path"]
)
def test_what_the_image_has_of_its_own_stays(path: str, tree: Path) -> None:
    assert not agent(tree, (Path(path),)) & {Path(path), *IMAGES_OWN}


def test_a_server_is_shown_unless_the_agent_could_read_the_eval(tree: Path) -> None:
    (tree / "project" / "server").mkdir()
    own = McpServer(name="x", type="stdio", command="python3", cwd="server", base_dir=tree / "project")
    assert agent(tree, servers={"x": own}) == {tree / "project" / "server"}
    beside = replace(own, cwd=None)
    with pytest.raises(BackendError, match=r"MCP server 'x' starts in .*project'.*mount=.*:ro"):
        agent(tree, servers={"x": beside})
    project = tree / "project"
    assert agent(tree, servers={"x": beside}, mount=f"{project}:{project}:ro") == set()


def test_graders_see_the_project_but_no_results(tree: Path) -> None:
    item = trial_item(tree / "project", stimulus())
    results = tree / "project" / "out"
    options = trial_options(ScriptedExecutor(), [], run_dir=results)
    mounts, hidden = sights(tree).graders(item, options)
    assert mounts == [Mount(tree / "project", tree / "project")]
    assert hidden == [results]


def covered(tree: Path, hidden: list[str], shown: list[str]) -> dict[str, set[str]]:
    """What is covered, each with the places for mounts that its cover has; all paths below `tree`."""
    covers = tree / "covers"
    covers.mkdir()
    for name in (*hidden, *shown):
        (tree / name).mkdir(parents=True, exist_ok=True)
    recipe = Recipe(
        engine=Engine("podman", "podman", {}),
        args=ContainerArgs(),
        identity=Identity("task:1", "node", 1000, 1000, (), "/usr/bin", None),
        network="none",
        labels={},
        mounts=tuple(Mount(tree / name, tree / name) for name in shown),
        hidden=tuple(tree / name for name in hidden),
        covers=covers,
    )
    found = {}
    for word in recipe.command("c"):
        if word.startswith(f"type=bind,source={covers}"):
            source, target = (Path(field.partition("=")[2]) for field in word.split(",")[1:3])
            places = {str(path.relative_to(source)) for path in source.rglob("*")}
            found[str(target.relative_to(tree))] = places
    return found


@pytest.mark.parametrize(
    ("hidden", "shown", "covers"),
    [
        (["project/out"], ["project"], {"project/out": set()}),
        # The directory of the trial exists once something of it was kept.
        (["project/out", "project/out/e/0"], ["project"], {"project/out": set()}),
        (["project/out/e/0", "project/out"], ["project"], {"project/out": set()}),
        (["private", "private/w/git"], ["private/w"], {"private": {"w"}, "private/w/git": set()}),
        (["a", "b"], [], {"a": set(), "b": set()}),
    ],
)
def test_what_is_hidden_is_covered_once(
    hidden: list[str], shown: list[str], covers: dict[str, set[str]], tree: Path
) -> None:
    assert covered(tree, hidden, shown) == covers


def test_a_project_stays_visible_when_it_is_the_temporary_directory(tree: Path) -> None:
    item, options = trial_item(tree / "tmp", stimulus()), trial_options(ScriptedExecutor(), [])
    assert sights(tree).graders(item, options) == ([Mount(tree / "tmp", tree / "tmp")], [])


def test_a_project_in_the_place_of_the_system_is_refused(tree: Path) -> None:
    item = replace(trial_item(tree / "project", stimulus()), project_root=Path("/"))
    with pytest.raises(BackendError, match="'/' cannot be shown to graders"):
        sights(tree).graders(item, trial_options(ScriptedExecutor(), []))


def test_nothing_is_mounted_in_the_workspace(tree: Path) -> None:
    item, options = trial_item(tree / "project", stimulus()), trial_options(ScriptedExecutor(), [])
    made = sights(tree, mount=f"{tree}/tools:{tree}/workspace/tools")
    with pytest.raises(BackendError, match="nothing can be mounted in the workspace"):
        made.common(item, options, [tree / "workspace"], tree / "tmp")


def test_temporary_directories_are_the_trial_s(tree: Path) -> None:
    item, options = trial_item(tree / "project", stimulus()), trial_options(ScriptedExecutor(), [])
    mounts = {mount.target: mount for mount in sights(tree).common(item, options, [tree / "workspace"], tree / "tmp")}
    for place in ("/tmp", "/var/tmp"):
        source = mounts[Path(place)].source
        assert source.parent == tree / "tmp"
        assert source.stat().st_mode & 0o7777 == 0o1777
    assert mounts[tree / "workspace"] == Mount(tree / "workspace", tree / "workspace", read_only=False)


def test_one_mount_for_each_place() -> None:
    a, b = Path("/a"), Path("/a/b")
    assert distinct([Mount(a, a), Mount(b, b)]) == (Mount(a, a),)
    assert distinct([Mount(a, a), Mount(b, b, read_only=False)]) == (Mount(a, a), Mount(b, b, read_only=False))
    assert distinct([Mount(a, a), Mount(Path("/c"), b)]) == (Mount(a, a), Mount(Path("/c"), b))
    assert distinct([Mount(a, a), Mount(a, a, read_only=False)]) == (Mount(a, a, read_only=False),)


def test_paths_with_commas_and_quotes() -> None:
    path = Path('/a,b "c"')
    assert mounted([Mount(path, path)]) == [
        "--mount",
        'type=bind,"source=/a,b ""c""","target=/a,b ""c""",readonly',
    ]
    assert os.sep in mounted([Mount(Path("/a"), Path("/b"), read_only=False)])[1]
