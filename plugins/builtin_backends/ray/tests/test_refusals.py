"""What cannot be done is told in one line, before anything starts."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from vally import BackendError, Environment, GitSource, PluginSources, WorkspaceChoice
from vally.testing import CliResult, run_cli, stimulus, trial_item
from vally_backend_ray import connecting, refusals
from vally_backend_ray.addresses import GIVE_TOKEN, NO_CLUSTER, NOT_LET_IN, OTHER_TOKEN
from vally_backend_ray.cluster import Cluster
from vally_backend_ray.messages import ClusterSettings, HostPlan


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for needed in ("vally_executor_mock", "vally_grader_output"):
        pytest.importorskip(needed)
    graders = [{"type": "output-contains", "config": {"substring": "hello"}}]
    stimuli = [{"name": "s", "prompt": "hello", "graders": graders}]
    spec = {"name": "e", "defaults": {"executor": "mock"}, "stimuli": stimuli}
    (tmp_path / "eval.yaml").write_text(json.dumps(spec))
    return tmp_path


def evaluate(root: Path, *words: str) -> CliResult:
    result = run_cli(["eval", "-e", "eval.yaml", "--backend", "ray", "--output-dir", "out", *words], cwd=root)
    assert result.exit_code == 1
    assert not (root / "out").exists(), "the run directory was made"
    assert result.stdout == ""
    return result


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        assert name == "ray"
        return None

    monkeypatch.setattr(refusals, "find_spec", find)


@pytest.mark.usefixtures("without_ray")
def test_without_ray_it_is_told_how_to_install_it(root: Path) -> None:
    error, hint = evaluate(root).stderr.splitlines()
    assert error == "error: --backend ray: Ray is not installed [ray-unavailable]"
    assert hint.strip() == "pip install 'vally[ray]'"


@pytest.mark.usefixtures("without_ray")
def test_the_doctor_says_so(root: Path) -> None:
    lines = run_cli(["doctor"], cwd=root).stdout.splitlines()
    (line,) = [line for line in lines if "backend" in line and " ray " in line]
    assert "cannot start: Ray is not installed; pip install" in line


def dry_run(root: Path, *words: str) -> str:
    result = run_cli(["eval", "-e", "eval.yaml", "--backend", "ray", "--dry-run", *words], cwd=root)
    assert (result.exit_code, result.stdout[:5]) == (1, "Plan:")
    return result.stderr


@pytest.mark.usefixtures("without_ray")
def test_a_plan_alone_says_so_too(root: Path) -> None:
    assert "error: --backend ray: Ray is not installed [ray-unavailable]" in dry_run(root)


def test_a_plan_alone_is_checked_without_a_cluster(root: Path) -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    for words, told in (
        (["--backend-args", f"address=127.0.0.1:{free}"], f"no cluster at '127.0.0.1:{free}': "),
        (["--backend-args", "inner=no-such"], "no-such"),
        (["--backend-args", "inner-arg=disk-limt=1g"], "unknown key 'disk-limt'"),
        (["--workspace", "w"], "--workspace names a directory of this machine"),
    ):
        assert told in dry_run(root, *words)


@pytest.mark.parametrize("words", [("--workspace", "here"), ("--workspace", "here", "--in-place")])
def test_directories_of_this_machine(words: tuple[str, ...], root: Path) -> None:
    pytest.importorskip("ray")
    (root / "here").mkdir()
    (error,) = evaluate(root, *words).stderr.splitlines()
    assert f"{words[-1] if len(words) > 2 else words[0]} names a directory of this machine" in error
    assert error.endswith("[unsupported-option]")


def test_an_explicit_work_directory(root: Path) -> None:
    pytest.importorskip("ray")
    (root / "work").mkdir()
    (error,) = evaluate(root, "--work-dir", "work").stderr.splitlines()
    assert "--work-dir names a directory of this machine" in error


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["address=127.0.0.1:1"], "no cluster at '127.0.0.1:1': Connection refused [ray-unavailable]"),
        (["address=127.0.0.1:1"], "start one with 'ray start --head', or leave 'address' out"),
        (["inner=nobody"], "no backend named 'nobody'"),
        (["inner-arg=disk-limit=lots"], "inner-arg: backend 'local': a size such as '512m'"),
        (
            ["inner-arg=disk-limt=1g"],
            "unknown key 'disk-limt'\n  did you mean 'disk-limit'?\n  arguments: ",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_arguments_that_come_to_nothing(words: list[str], told: str, root: Path) -> None:
    pytest.importorskip("ray")
    options = [word for text in words for word in ("--backend-args", text)]
    assert told in evaluate(root, *options).stderr


@pytest.mark.parametrize(
    ("port", "told", "hint"),
    [(True, "no connection to '127.0.0.1:", NOT_LET_IN), (False, "no cluster at 'auto': refused", NO_CLUSTER)],
)
def test_a_cluster_that_does_not_let_in_is_not_a_missing_one(
    port: bool, told: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")

    def refuse(**_: object) -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr(ray, "init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}" if port else "auto"
        settings = ClusterSettings(
            address=address,
            directory=tmp_path,
            workers=1,
            slots=1,
            cpus=1,
            memory=None,
            resources={},
            max_losses=0,
            worker=b"",
            host=HostPlan(key="k", sources=PluginSources()),
        )
        with pytest.raises(BackendError) as caught:
            Cluster(settings).open()
    assert told in caught.value.message
    assert caught.value.hints == (hint,)


def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(BackendError, match="needs Linux or macOS"):
        refusals.check_installation()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"workspace": WorkspaceChoice(path=Path("/w"), keep=True)}, "--workspace names"),
        ({"workspace": WorkspaceChoice(path=Path("/w"), in_place=True)}, "--work-dir names"),
        ({"url": "file:///srv/x.git"}, "the repository 'file:///srv/x.git' lies on this machine"),
    ],
)
def test_items_that_are_bound_to_this_machine(fields: dict[str, Any], told: str, tmp_path: Path) -> None:
    url = fields.pop("url", None)
    environment = Environment(git=GitSource(type="clone", url=url)) if url else Environment()
    with pytest.raises(BackendError) as caught:
        refusals.check_item(trial_item(tmp_path, stimulus(environment=environment), **fields))
    assert told in caught.value.message
    assert caught.value.code == "unsupported-option"


@pytest.mark.parametrize("token", [None, "t"])
def test_who_waits_for_a_cluster_is_told_for_which(
    token: str | None, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(connecting, "NOTICE_S", 0.1)
    monkeypatch.setattr(connecting, "CONNECT_S", 0.5)
    env = {} if token is None else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        words = ["eval", "-e", "eval.yaml", "--backend", "ray", "--backend-args", f"address={address}"]
        notice, error, *hints = run_cli(words, cwd=root, env=env).stderr.splitlines()
    told = f"warning: still connecting to the Ray cluster at '{address}'"
    asked = "; if it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    assert notice == (told + asked if token is None else told)
    assert error == f"error: --backend ray: '{address}' did not answer within 0.5 s [ray-unavailable]"
    assert [hint.strip() for hint in hints] == ([NOT_LET_IN] if token is None else [])


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def header(name: str, value: str) -> bytes:
    """A field of HTTP/2 that is not compressed."""
    return b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


class LockedCluster(socketserver.StreamRequestHandler):
    """Answers every call as the head node of a cluster does that does not accept the token."""

    REFUSAL = b"\x88" + b"".join(
        [
            header("content-type", "application/grpc"),
            header("grpc-status", "16"),
            header("grpc-message", "InvalidAuthToken: Authentication token is missing or incorrect"),
        ]
    )

    def handle(self) -> None:
        self.rfile.read(24)
        self.wfile.write(frame(4, 0, 0))
        while len(head := self.rfile.read(9)) == 9:
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = self.rfile.read(int.from_bytes(head[:3], "big"))
            if kind in (4, 6) and not flags & 1:
                self.wfile.write(frame(kind, 1, 0, payload if kind == 6 else b""))
            elif kind == 1:
                self.wfile.write(frame(1, 5, stream, self.REFUSAL))


@pytest.mark.parametrize(
    ("env", "told", "hint"),
    [
        ({}, "asks for a token", GIVE_TOKEN),
        ({"RAY_AUTH_TOKEN": "t" * 40}, "asks for a token", GIVE_TOKEN),
        ({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "t" * 40}, "does not accept the token", OTHER_TOKEN),
    ],
)
def test_a_cluster_that_does_not_accept_the_token(
    env: dict[str, str], told: str, hint: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(connecting, "NOTICE_S", 600)
    with socketserver.ThreadingTCPServer(("", 0), LockedCluster) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        address = f"127.0.0.1:{server.server_address[1]}"
        words = ["eval", "-e", "eval.yaml", "--backend", "ray", "--backend-args", f"address={address}"]
        error, advice = run_cli(words, cwd=root, env=env).stderr.splitlines()
        server.shutdown()
        thread.join()
    assert error == f"error: --backend ray: '{address}' {told} [ray-unavailable]"
    assert advice.strip() == hint
