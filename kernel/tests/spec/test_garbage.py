"""Reading a spec and looking for garbage."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from vally import PluginHost, read_eval_spec
from vally.spec.garbage import no_collections
from vally.testing import plugin_host


def looks(path: Path, host: PluginHost) -> int:
    def so_far() -> int:
        return sum(generation["collections"] for generation in gc.get_stats())

    before = so_far()
    assert read_eval_spec(path, host=host).spec is not None
    return so_far() - before


def test_no_garbage_is_looked_for_while_a_spec_is_read(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text("name: e\nstimuli:\n" + "".join(f"- {{name: s{number}, prompt: p}}\n" for number in range(500)))
    host = plugin_host()
    looks(path, host)  # Imports.
    gc.collect(1)  # Nearly nothing is new then.
    assert looks(path, host) <= 1
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(enabled: bool) -> None:
    assert gc.isenabled()
    if not enabled:
        gc.disable()
    try:
        with no_collections():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
