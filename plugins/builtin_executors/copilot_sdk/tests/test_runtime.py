"""Finding the runtime, and fetching it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vally import ExecutorError
from vally_executor_copilot_sdk.cli import main
from vally_executor_copilot_sdk.runtime import Places, find_runtime, installed_runtime, is_tested, platform_name

SKIP = {"COPILOT_SKIP_CLI_DOWNLOAD": "1", "PATH": ""}


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def small(directory: Path, version: str) -> Path:
    return program(directory / version / "prebuilds" / platform_name() / "copilot-runtime")


def nothing_to_say(text: str) -> None:
    raise AssertionError(text)


def test_the_places_in_their_order(tmp_path: Path) -> None:
    """Taking away the first one leads to the next."""
    project = program(tmp_path / "project" / "node_modules" / ".bin" / "copilot")
    on_path = program(tmp_path / "bin" / "copilot")
    cli_cache = small(tmp_path / "home" / ".cache" / "copilot" / "pkg" / platform_name(), "1.0.101")
    if sys.platform == "darwin":
        cli_cache = small(tmp_path / "home" / "Library" / "Caches" / "copilot" / "pkg" / platform_name(), "1.0.101")
    own_cache = small(tmp_path / "cache" / "copilot", "1.0.100")
    named = program(tmp_path / "named" / "copilot-runtime")
    configured = program(tmp_path / "configured" / "copilot-runtime")
    env = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin"), "COPILOT_CLI_PATH": str(named)}
    places = Places({**SKIP, **env}, cache=tmp_path / "cache", project=tmp_path / "project")
    for expected in (configured, named, own_cache, cli_cache, on_path, project):
        assert find_runtime(configured, places, nothing_to_say) == expected.resolve()
        expected.unlink()
    with pytest.raises(ExecutorError) as caught:
        find_runtime(configured, places, nothing_to_say)
    assert caught.value.code == "executor-unavailable"
    told = caught.value.message
    for place in (configured, named, "the cache", "what the CLI unpacked", "'copilot' on PATH", project):
        assert str(place) in told
    assert "run 'python -m vally_executor_copilot_sdk provision' or set COPILOT_CLI_PATH" in told


def test_the_newest_tested_version_counts(tmp_path: Path) -> None:
    for version in ("1.0.99", "1.0.9", "1.0.100", "1.0.102", "1.0.102-0", "tmp"):
        small(tmp_path / "copilot", version)
    found = installed_runtime(None, Places(SKIP, cache=tmp_path))
    assert found is not None
    assert found.parts[-4].startswith("1.0.102")
    old = tmp_path / "old"
    small(old / "copilot", "1.0.64-0")
    assert installed_runtime(None, Places(SKIP, cache=old)) is None


def test_tested_versions() -> None:
    versions = ("1.0.64-0", "1.0.99", "1.0.100", "1.0.102", "1.1.0", "2.0.0", "nonsense")
    assert [is_tested(version) for version in versions] == [False, False, True, True, True, True, False]


def test_the_whole_cli_leads_to_the_small_runtime(tmp_path: Path) -> None:
    name = platform_name()
    package = tmp_path / "node_modules" / "@github" / f"copilot-{name}"
    whole = program(package / "copilot")
    (package / "package.json").write_text('{"version": "1.0.102"}')
    loader = program(tmp_path / "node_modules" / "@github" / "copilot" / "npm-loader.js")
    link = tmp_path / "bin" / "copilot"
    link.parent.mkdir()
    link.symlink_to(loader)
    home = {**SKIP, "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    places = Places({**home, "PATH": str(link.parent)})
    assert installed_runtime(None, places) == whole
    unpacked = small(tmp_path / "xdg" / "copilot" / "pkg" / name, "1.0.102")
    assert installed_runtime(whole, places) == unpacked
    assert installed_runtime(link, places) == unpacked
    beside = program(package / "copilot-runtime")
    assert installed_runtime(link, places) == beside


def test_the_sdk_is_asked_last_and_not_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import copilot

    fetched = program(tmp_path / "fetched" / "copilot-runtime")

    class Client:
        def __init__(self, *, connection: Any, env: Any) -> None:
            connection.path = str(fetched)

    monkeypatch.setattr(copilot, "CopilotClient", Client)
    said: list[str] = []
    assert find_runtime(None, Places({"PATH": ""}), said.append) == fetched
    assert said == [
        "no Copilot runtime was found; the SDK may now download its own (COPILOT_SKIP_CLI_DOWNLOAD=1 prevents that)"
    ]

    class Failing:
        def __init__(self, **_: Any) -> None:
            raise RuntimeError("no network")

    monkeypatch.setattr(copilot, "CopilotClient", Failing)
    with pytest.raises(ExecutorError, match="no Copilot runtime was found"):
        find_runtime(None, Places({"PATH": ""}), said.append)


UNPACKS = """#!/bin/sh
place="$XDG_CACHE_HOME/copilot/pkg/x/1.0.102/prebuilds/{platform}"
mkdir -p "$place" && echo small > "$place/copilot-runtime" && env > "$place/env.txt"
"""


LINK = "a symbolic link"


def package(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            if text == LINK:
                info.type, info.linkname = tarfile.SYMTYPE, ".."
                archive.addfile(info)
                continue
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Registry:
    """A registry with one version of one package; counts what is asked."""

    def __init__(self) -> None:
        self.archive = package({"package/copilot": UNPACKS.format(platform=platform_name())})
        self.integrity: str | None = None
        self.asked: list[str] = []
        self.url = ""

    def answer(self, path: str) -> bytes | None:
        self.asked.append(path)
        if path.endswith(".tgz"):
            return self.archive
        if path != f"/@github%2Fcopilot-{platform_name()}/1.0.102":
            return None
        digest = base64.b64encode(hashlib.sha512(self.archive).digest()).decode()
        dist = {"tarball": f"{self.url}/a.tgz", "integrity": self.integrity or f"sha512-{digest}"}
        return json.dumps({"dist": dist}).encode()


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = made.answer(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provision(registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*words: str, **env: str) -> tuple[int, str]:
        environ = {
            "VALLY_CACHE_DIR": str(tmp_path),
            "npm_config_registry": registry.url,
            "PATH": "/usr/bin:/bin",
            **env,
        }
        code = main(["provision", *words], environ)
        captured = capsys.readouterr()
        return code, (captured.out + captured.err).strip()

    return run


def test_provisioning(provision: Callable[..., tuple[int, str]], registry: Registry, tmp_path: Path) -> None:
    place = tmp_path / "copilot" / "1.0.102" / "prebuilds" / platform_name()
    assert provision(GITHUB_TOKEN="secret") == (0, str(place / "copilot-runtime"))
    assert "secret" not in (place / "env.txt").read_text()
    assert len(registry.asked) == 2
    assert provision() == (0, str(place / "copilot-runtime"))
    assert len(registry.asked) == 2, "what is there is used again"
    assert installed_runtime(None, Places(SKIP, cache=tmp_path)) == place / "copilot-runtime"
    assert [path.name for path in (tmp_path / "copilot").iterdir()] == ["1.0.102"]
    code, shown = provision("--dir", str(tmp_path / "elsewhere"))
    assert (code, shown) == (
        0,
        str(tmp_path / "elsewhere" / place.relative_to(tmp_path / "copilot") / "copilot-runtime"),
    )


@pytest.mark.parametrize(
    ("script", "code", "problem"),
    [
        ('echo "$REGISTRY"', 0, ""),
        ("exit 3", 1, "npm does not tell its registry; name one with --registry URL"),
        ("echo undefined", 1, "npm does not tell its registry; name one with --registry URL"),
        (None, 1, "npm, which knows its registry, is not installed; name one with --registry URL"),
    ],
)
def test_npm_knows_the_registry(
    provision: Callable[..., tuple[int, str]],
    registry: Registry,
    tmp_path: Path,
    script: str | None,
    code: int,
    problem: str,
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if script is not None:
        (programs / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "npm").chmod(0o755)
    path = f"{programs}:/usr/bin:/bin" if script is not None else str(programs)
    done = provision(npm_config_registry="", REGISTRY=registry.url, PATH=path)
    assert done[0] == code, done
    assert problem in done[1]


def test_an_archive_that_was_changed(
    provision: Callable[..., tuple[int, str]], registry: Registry, tmp_path: Path
) -> None:
    registry.integrity = "sha512-" + base64.b64encode(b"0" * 64).decode()
    code, shown = provision()
    assert code == 1
    assert "the archive is not the one that the registry describes" in shown
    assert not list((tmp_path / "copilot").iterdir())


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"package/other": ""}, "the package has no program"),
        ({"package/copilot": "#!/bin/sh\necho broken >&2; exit 3\n"}, "does not start (exit code 3): broken"),
        ({"package/copilot": "nonsense"}, "does not start"),
        ({"../escape": "", "package/copilot": ""}, "cannot be read: '../escape' is not one of the files of a package"),
        ({"/escape": "", "package/copilot": ""}, "cannot be read: '/escape' is not one of the files of a package"),
        ({"package/away": LINK, "package/copilot": ""}, "cannot be read: 'package/away' is not one of the files"),
    ],
    ids=["missing", "failing", "no-program", "escaping", "absolute", "link"],
)
def test_packages_that_cannot_be_used(
    provision: Callable[..., tuple[int, str]],
    registry: Registry,
    tmp_path: Path,
    files: dict[str, str],
    problem: str,
) -> None:
    registry.archive = package(files)
    code, shown = provision()
    assert code == 1
    assert problem in shown
    assert not list((tmp_path / "copilot").iterdir())
    assert not (tmp_path / "escape").exists()


def test_a_cli_that_serves_the_sdk_itself(provision: Callable[..., tuple[int, str]], registry: Registry) -> None:
    registry.archive = package({"package/copilot": "#!/bin/sh\n"})
    code, shown = provision()
    assert code == 0
    assert Path(shown).name == "copilot"


def test_other_mistakes(provision: Callable[..., tuple[int, str]], registry: Registry) -> None:
    assert provision("--version", "9.9.9") == (
        1,
        f"error: {registry.url}/@github%2Fcopilot-{platform_name()}/9.9.9: HTTP status 404; is there such a version?",
    )
    code, shown = provision("--registry", "http://registry.example")
    assert code == 1
    assert "is not an https URL" in shown
    code, shown = provision("--registry", "http://127.0.0.1:1")
    assert code == 1
    assert "cannot be reached" in shown
