"""Arguments of the backends, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vally import ConfigInvalid
from vally.testing import plugin_host
from vally_backend_container import plugin
from vally_backend_container.config import ContainerArgs, Mount

RECORDS = tuple(plugin.vally_backends())


def parse(**args: Any) -> ContainerArgs:
    record = RECORDS[0]
    given = {name.replace("_", "-"): value for name, value in args.items()}
    parsed = plugin_host(*RECORDS).parse_config(record, given)
    assert isinstance(parsed, ContainerArgs)
    return parsed


def test_defaults() -> None:
    args = parse()
    assert (args.network, args.grade_network, args.setup_network) == ("model", "none", "bridge")
    assert (args.memory, args.cpus, args.pids, args.pull) == (4 * 2**30, None, 512, "missing")
    assert (args.startup_timeout, args.disk_limit) == (120.0, 10 * 2**30)


def test_values(tmp_path: Path) -> None:
    args = parse(
        image="task:1",
        memory="512m",
        cpus="0.5",
        pids="64",
        mount=[f"{tmp_path}:/data:ro", f"{tmp_path}:/more"],
        engine_arg="--shm-size=1g",
        startup_timeout="1m30s",
        user="1000:1000",
    )
    assert (args.memory, args.cpus, args.pids, args.startup_timeout) == (512 * 2**20, 0.5, 64, 90.0)
    assert args.mount == (Mount(tmp_path, Path("/data")), Mount(tmp_path, Path("/more"), read_only=False))
    assert args.engine_arg == ("--shm-size=1g",)


@pytest.mark.parametrize("name", ["linux/amd64", "linux/arm/v7", "linux/x86_64", "windows/amd64", "linux/s390x"])
def test_platforms(name: str) -> None:
    assert parse(platform=name).platform == name


WRONG = {
    "pids=0": "a number of processes",
    "pids=many": "a number of processes",
    "memory=lots": "a size such as",
    "memory=1m": "at least 64m",
    "cpus=all": "a number of processors",
    "cpus=0": "a number of processors",
    "mount=here:/there": "two absolute paths",
    "mount=/usr": "two absolute paths",
    "mount=/usr:/x:rx": "two absolute paths",
    "mount=/no/such/path:/there": "does not exist",
    "mount=/usr:/proc/x": "nothing can be mounted",
    "mount=/usr:/": "nothing can be mounted",
    "network=a b": "the name of a network",
    "network=--x": "the name of a network",
    "grade-network=model": "for the agent alone",
    "setup-network=model": "for the agent alone",
    "user=a b": "a user as in",
    "user=--x": "a user as in",
    "image=": "image",
    "image=--x": "the name of an image",
    "image=a b": "the name of an image",
    "pull=sometimes": "pull",
    "platform=": "a platform 'os/arch' such as 'linux/arm64' is expected, not ''",
    "platform=x": "a platform 'os/arch'",
    "platform=linux": "a platform 'os/arch'",
    "platform=amd64": "did you mean 'linux/amd64'?",
    "platform=linux-arm64": "did you mean 'linux/arm64'?",
    "platform=linux/amd46": "did you mean 'linux/amd64' or",
    "platform=linxu/arm64": "did you mean 'linux/arm64'?",
    "platform=Linux/ARM64": "did you mean 'linux/arm64'?",
    "platform=linux/arm64/v8/x": "did you mean 'linux/arm64'?",
    "platform=--privileged": "a platform 'os/arch'",
    "engine-arg=--network=host": "is set by the argument 'network'",
    "engine-arg=-v=/:/x": "is set by the argument 'mount'",
    "engine-arg=x": "an option such as",
    "startup-timeout=5": "duration",
    "startup-timeout=0s": "duration",
    "imge=x": "unknown key 'imge'",
}


@pytest.mark.parametrize("word", WRONG)
def test_wrong_values_are_told(word: str) -> None:
    name, _, value = word.partition("=")
    with pytest.raises(ConfigInvalid) as caught:
        parse(**{name: value})
    assert WRONG[word] in caught.value.problems[0]


def test_two_sources_of_an_image_are_one_too_many() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse(image="a", dockerfile="b")
    assert caught.value.problems == ("'image' and 'dockerfile' exclude each other; leave one out",)


def test_the_same_arguments_for_every_engine() -> None:
    assert [record.name for record in RECORDS] == ["container", "docker", "podman"]
    assert {record.config for record in RECORDS} == {"vally_backend_container.config:ContainerArgs"}
    assert all(record.isolates and not record.remote for record in RECORDS)
