"""What is an extra of the meta-distribution is told with the command that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vally import PluginError, PluginHost, PluginSources

METADATA = """Metadata-Version: 2.4
Name: vally
Version: 9.9
Requires-Dist: vally-kernel==9.9
Requires-Dist: acme-tools; extra == "acme"
Provides-Extra: far
Requires-Dist: vally_backend_far @ file:///somewhere ; extra == 'far'
Requires-Dist: vally-judge-tall==9.9; extra == "very-tall"
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginHost:
    (tmp_path / "vally-9.9.dist-info").mkdir()
    (tmp_path / "vally-9.9.dist-info" / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(tmp_path)
    return PluginHost(sources=PluginSources(installed=False))


@pytest.mark.parametrize(
    ("kind", "name", "extra"),
    [("backend", "far", "far"), ("judge", "tall", "very-tall"), ("judge", "far", None), ("backend", "acme", None)],
)
def test_extras(kind: str, name: str, extra: str | None, host: PluginHost) -> None:
    with pytest.raises(PluginError) as caught:
        host.require(kind, name)
    found = [hint for hint in caught.value.hints if hint.startswith("pip install")]
    assert found == ([f"pip install 'vally[{extra}]'"] if extra else [])


def test_the_option_tells_it_too(host: PluginHost) -> None:
    with pytest.raises(PluginError) as caught:
        host.resolve_one("backend", "far")
    assert "pip install 'vally[far]'" in caught.value.hints
