"""Engines that are not there, do not answer, or answer what nobody expects; these are shell scripts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from vally import BackendError
from vally.testing import run_context
from vally_backend_container.backend import ContainerBackend
from vally_backend_container.config import ContainerArgs
from vally_backend_container.engine import CALL_SECONDS, Engine, EngineError, client_environment, find_engine, said
from vally_backend_container.images import Image, Images
from vally_backend_container.probing import PODMAN_SETTINGS, Prober

ROOTLESS = '{"host": {"security": {"rootless": true}}}'
ROOTFUL = '{"host": {"security": {"rootless": false}}}'
PODMAN = {"version": """echo '{"Client": {"Version": "9.1"}}'""", "info": f"echo '{ROOTFUL}'"}
DOCKER = {
    "version": """echo '{"Client": {"Version": "1"}, "Server": {"Version": "28.0"}}'""",
    "info": """echo '{"SecurityOptions": ["name=seccomp", "name=rootless"]}'""",
}


class Programs:
    """A directory of engines, and the environment in which they are found."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.env = {"PATH": str(directory)}

    def add(self, name: str, calls: dict[str, str]) -> None:
        """An engine that does something for each word; its global options are skipped."""
        cases = "\n".join(f"{word}) {line} ;;" for word, line in calls.items())
        program = self.directory / name
        program.write_text(f'#!/bin/sh\n[ "$1" = --runtime ] && shift 2\ncase $1 in\n{cases}\n*) exit 1 ;;\nesac\n')
        program.chmod(0o755)

    def find(self, backend: str = "container", **options: Any) -> Engine:
        async def main() -> Engine:
            return await find_engine(backend, self.env, **options)

        return anyio.run(main)

    def problem(self, backend: str = "container") -> BackendError:
        with pytest.raises(BackendError) as caught:
            self.find(backend)
        assert caught.value.code == "container-unavailable"
        return caught.value


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "bin")


def test_podman_comes_first(programs: Programs) -> None:
    programs.add("podman", PODMAN)
    programs.add("docker", DOCKER)
    found = programs.find()
    assert (found.name, found.version, found.rootless, found.maps_users) == ("podman", "9.1", False, False)
    assert programs.find("docker").version == "28.0"
    assert programs.find("docker").rootless


def test_docker_is_taken_when_podman_does_not_answer(programs: Programs) -> None:
    programs.add("podman", {**PODMAN, "info": "echo 'cannot find newuidmap' >&2; exit 125"})
    programs.add("docker", DOCKER)
    assert programs.find().name == "docker"


def test_podman_without_root_maps_users(programs: Programs) -> None:
    programs.add("podman", {**PODMAN, "info": f"echo '{ROOTLESS}'"})
    assert programs.find().maps_users


def test_podman_gets_its_runtime_before_every_command(programs: Programs) -> None:
    programs.add("podman", PODMAN)
    assert programs.find(runtime="runc").command("run")[1:] == ["--runtime", "runc", "run"]
    programs.add("docker", DOCKER)
    assert programs.find("docker", runtime="runc").command("run")[1:] == ["run"]


def test_each_engine_s_own_words_are_told(programs: Programs) -> None:
    programs.add("podman", {"version": "echo 'cannot set up namespace' >&2; exit 125"})
    programs.add("docker", {"version": "echo 'Cannot connect to the Docker daemon' >&2; exit 1"})
    error = programs.problem()
    assert (error.where, error.message) == ("--backend container", "neither podman nor docker answers")
    assert error.hints[:2] == ("podman: cannot set up namespace", "docker: Cannot connect to the Docker daemon")
    assert "install the package 'podman'" in error.hints[2]


@pytest.mark.parametrize("backend", ["podman", "docker"])
def test_one_engine_that_is_missing_or_silent(backend: str, programs: Programs) -> None:
    assert programs.problem(backend).message == f"{backend} was not found on PATH"
    programs.add(backend, {"version": "echo broken >&2; exit 3"})
    assert programs.problem(backend).message == f"{backend} does not answer: broken"


def test_an_answer_that_is_none(programs: Programs) -> None:
    programs.add("podman", {**PODMAN, "version": "echo hello"})
    assert "something else than JSON: 'hello" in programs.problem("podman").message


@pytest.mark.parametrize(
    ("name", "said", "hints"),
    [
        ("podman", "runc create failed: error setting rlimit type 7: operation not permitted", (PODMAN_SETTINGS,)),
        ("podman", "crun: sd-bus call: Interactive authentication required", (PODMAN_SETTINGS,)),
        ("podman", "unknown flag: --no-such-option", ()),
        ("docker", "error setting rlimit type 7: operation not permitted", ()),
    ],
)
def test_podman_without_its_settings_says_where_they_are_told(
    name: str, said: str, hints: tuple[str, ...], programs: Programs
) -> None:
    programs.add(name, {"run": f"echo 'Error: {said}' >&2; exit 126"})
    engine = Engine(name, str(programs.directory / name), programs.env)
    prober = Prober(engine, ContainerArgs(), {}, print)
    with pytest.raises(BackendError, match=f"{name} cannot start a container of image 'task:1': Error: ") as caught:
        anyio.run(prober.identify, Image("task:1", "sha256:0"))
    assert (caught.value.code, caught.value.hints) == ("container-unavailable", hints)


def test_an_engine_that_hangs(programs: Programs) -> None:
    engine = Engine("podman", str(programs.directory / "podman"), programs.env)
    programs.add("podman", {"ps": "exec /bin/sleep 600"})

    async def main() -> None:
        await engine.call("ps", seconds=0.2)

    with pytest.raises(EngineError, match=r"'podman ps' did not end within 0\.2 s") as caught:
        anyio.run(main)
    assert caught.value.returncode is None


HANGING = """
import os, signal, sys
# What starts in the background of a script ignores the signal, and so would this program.
signal.signal(signal.SIGINT, signal.default_int_handler)
import anyio
from vally_backend_container.engine import find_engine
async def main():
    await find_engine("podman", dict(os.environ), None, lambda line: print(line, flush=True))
anyio.run(main)
"""


def test_who_waits_for_an_engine_is_told_and_can_end_it(programs: Programs) -> None:
    """Ctrl-C ends a program of asyncio by cancelling its task once."""
    programs.add("podman", {"version": "exec /bin/sleep 600"})
    command = [sys.executable, "-c", HANGING]
    with subprocess.Popen(command, env=programs.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as waiting:
        assert waiting.stdout is not None
        line = waiting.stdout.readline().decode()
        assert line == f"still waiting for an answer of '{programs.directory / 'podman'}'\n"
        waiting.send_signal(signal.SIGINT)
        # Before the engine's own time is over.
        assert waiting.wait(CALL_SECONDS / 2) != 0


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    engine = Engine("podman", str(tmp_path / "podman"), {})
    with pytest.raises(EngineError, match="cannot be started: No such file"):
        anyio.run(engine.call, "ps")


def test_notices_are_no_reason() -> None:
    notice = b'time="x" level=warning msg="not a shared mount"\n'
    assert said(notice + b"Error: no such\n  image\n") == "Error: no such image"
    assert said(b"limits are ignored\nError: no such image\n") == "Error: no such image"
    assert said(notice).startswith("time=")
    assert said(b"\n \n") == ""
    assert len(said(b"x" * 5000)) == 1000


def test_a_client_gets_what_it_needs_and_no_keys() -> None:
    needed = {"PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINERS_CONF", "CONTAINER_HOST", "https_proxy"}
    others = {"OPENAI_API_KEY", "GITHUB_TOKEN", "VALLY_TRIAL", "LD_PRELOAD"}
    assert set(client_environment(dict.fromkeys(needed | others, "x"))) == needed


def test_podman_would_wait_and_miss_what_is_gone() -> None:
    assert Engine("podman", "podman", {}).removal(["a"]) == [
        *("rm", "--force", "--volumes", "--time", "0", "--ignore", "a"),
    ]
    assert Engine("docker", "docker", {}).removal(["a"]) == ["rm", "--force", "--volumes", "a"]


OF_AN_IMAGE = """case "$4" in *Id*) echo abc ;; *) echo linux/amd64 ;; esac"""


def named(programs: Programs, **args: Any) -> Image:
    """What comes of an image that is there, for `linux/amd64`."""
    programs.add("podman", PODMAN | {"image": OF_AN_IMAGE, "pull": f'echo "$@" >> {programs.directory}/pulled'})

    async def main() -> Image:
        engine = await find_engine("podman", programs.env)
        return await Images(engine, ContainerArgs(**args), programs.directory, lambda _: None).named("i:1")

    return anyio.run(main)


@pytest.mark.parametrize("platform", [None, "linux/amd64", "linux/x86_64", "linux/amd64/v2"])
def test_an_image_that_is_there_is_taken(programs: Programs, platform: str | None) -> None:
    assert named(programs, platform=platform, pull="never") == Image("i:1", "sha256:abc")


def test_an_image_of_another_platform_is_none(programs: Programs) -> None:
    with pytest.raises(BackendError) as caught:
        named(programs, platform="linux/arm64", pull="never")
    assert caught.value.message == "there is no image 'i:1' for 'linux/arm64', and 'pull=never' forbids to fetch it"
    named(programs, platform="linux/arm64")
    assert (programs.directory / "pulled").read_text() == "pull --quiet --platform linux/arm64 i:1\n"


def preflight(programs: Programs, name: str = "podman", **args: Any) -> str:
    """What a backend says before a run."""

    async def main() -> str:
        context = run_context(programs.directory, process_env=programs.env)
        return await ContainerBackend(name).preflight(ContainerArgs(**args), context)

    return anyio.run(main)


HERE = OF_AN_IMAGE.replace("esac", "esac; [ $5 = i:1 ]")
STARTS = (
    """case "$*" in *sha256:abc*) printf '0\\n0\\n/bin\\n\\n\\n\\n\\n' ;; *--rootfs*) exit 127 ;; *) exit 125 ;; esac"""
)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"image": "i:1"}, "a container of image 'i:1' starts"),
        ({"image": "i:2"}, "containers start; a run fetches image 'i:2' first"),
        ({}, "containers start; a run builds its image from the default Dockerfile first"),
        (
            {"image": "i:1", "grade_image": "i:2"},
            "a container of image 'i:1' starts; containers start; a run fetches image 'i:2' first",
        ),
    ],
    ids=["there", "absent", "default", "two"],
)
def test_a_preflight_starts_a_container(programs: Programs, args: dict[str, Any], told: str) -> None:
    programs.add("podman", {**PODMAN, "image": HERE, "run": STARTS})
    assert preflight(programs, **args) == f"podman 9.1; {told}"


@pytest.mark.parametrize("image", ["i:1", "i:2"])
def test_a_preflight_fails_when_no_container_starts(programs: Programs, image: str) -> None:
    asked = programs.directory / "asked"
    calls = {"image": HERE, "run": "echo 'Error: no subuid ranges' >&2; exit 125", "ps": f"echo ps > {asked}"}
    programs.add("podman", PODMAN | calls)
    with pytest.raises(BackendError, match=r"podman cannot start a container.*: Error: no subuid ranges"):
        preflight(programs, image=image)
    assert asked.exists(), "nobody looked for what is left"


def test_docker_starts_nothing_without_an_image(programs: Programs) -> None:
    programs.add("docker", {**DOCKER, "image": HERE, "run": "exit 125"})
    told = "docker 28.0, rootless; a run fetches image 'i:2' first, and whether containers start shows then"
    assert preflight(programs, "docker", image="i:2") == told


@pytest.mark.parametrize("part", ["network", "setup_network", "grade_network"])
def test_a_network_that_the_engine_does_not_have(programs: Programs, part: str) -> None:
    network = "case $2 in inspect) [ $3 = tests ] ;; *) echo podman; echo tests ;; esac"
    programs.add("podman", {**PODMAN, "image": HERE, "run": STARTS, "network": network})
    assert preflight(programs, image="i:1", **{part: "tests"})
    with pytest.raises(BackendError, match="podman has no network 'test'") as caught:
        preflight(programs, image="i:1", **{part: "test"})
    assert caught.value.hints == ("did you mean 'tests'?",)
    with pytest.raises(BackendError, match="podman has no network 'x'") as caught:
        preflight(programs, image="i:1", **{part: "x"})
    assert caught.value.hints == ("networks: podman, tests",)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"image": "i:2", "pull": "never"}, "there is no image 'i:2'"),
        ({"dockerfile": "No such"}, "of 'dockerfile' does not exist"),
    ],
    ids=["image", "dockerfile"],
)
def test_a_preflight_knows_what_a_run_could_not_get(programs: Programs, args: dict[str, Any], told: str) -> None:
    programs.add("podman", {**PODMAN, "image": HERE, "run": STARTS})
    with pytest.raises(BackendError, match=told):
        preflight(programs, **args)
