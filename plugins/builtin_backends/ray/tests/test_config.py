"""Arguments: what is taken, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from vally import ConfigInvalid
from vally.testing import plugin_host
from vally_backend_ray import plugin
from vally_backend_ray.config import RayArgs

(RECORD,) = plugin.vally_backends()


def parsed(**args: Any) -> RayArgs:
    found: RayArgs = plugin_host(RECORD).parse_config(RECORD, {name.replace("_", "-"): args[name] for name in args})
    return found


def test_defaults() -> None:
    args = parsed()
    assert (args.address, args.workers, args.slots, args.cpus, args.memory) == (None, None, 4, 1.0, None)
    assert (args.inner, args.inner_args, args.max_losses, args.env, args.resources) == ("local", {}, 2, (), ())


def test_everything() -> None:
    args = parsed(
        address="10.0.0.1:6379",
        workers="12",
        slots="8",
        cpus="0.5",
        memory="4g",
        resources=["copilot=1", "disk=2.5"],
        inner="sandbox",
        inner_arg=["memory=2g", "ro=/a", "ro=/b"],
        max_losses="0",
        env=["A", "B"],
    )
    assert (args.address, args.workers, args.slots, args.cpus, args.memory) == ("10.0.0.1:6379", 12, 8, 0.5, 4 * 2**30)
    assert args.resources == (("copilot", 1.0), ("disk", 2.5))
    assert args.inner_args == {"memory": "2g", "ro": ["/a", "/b"]}
    assert (args.max_losses, args.env) == (0, ("A", "B"))


@pytest.mark.parametrize("address", ["auto", "head.example:6379", "[::1]:6379"])
def test_addresses(address: str) -> None:
    assert parsed(address=address).address == address


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"workers": "0"}, "at least 1"),
        ({"workers": "many"}, "a whole number"),
        ({"workers": "999999"}, "up to 100000"),
        ({"slots": "-1"}, "a whole number"),
        ({"cpus": "0"}, "above 0"),
        ({"cpus": "one"}, "above 0"),
        ({"memory": "lots"}, "a size such as"),
        ({"resources": "copilot"}, "name=value"),
        ({"resources": "copilot=none"}, "above 0"),
        ({"resources": "CPU=2"}, "set by the argument 'cpus'"),
        ({"resources": ["a=1", "a=2"]}, "given twice"),
        ({"inner": "ray"}, "another backend"),
        ({"inner-arg": "memory"}, "name=value"),
        ({"env": "A=B"}, "name of an environment variable"),
        ({"address": "ray://head:10001"}, "Ray Client addresses"),
        ({"address": "head"}, "<host>:<port>"),
        ({"adress": "auto"}, "unknown key 'adress'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_refusals(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parsed(**args)
    assert problem in caught.value.problems[0]
