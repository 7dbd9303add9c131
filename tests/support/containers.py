"""Real engines with an image of its own for tests, made without any registry of images.

The image is bootstrapped once from the packages of this system's own distribution and kept for later runs. Any number
of test processes may ask at once: the first makes it, the others wait. Tests are skipped, with the reason, where that
cannot be done, as without root.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from agents import agents_root, locked

PACKAGES = "ca-certificates,git,python3,procps"
SECONDS = 900
STARTING_SECONDS = 60
REFERENCE = """
[containers]
default_ulimits = ["nofile=1024:2048", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
"""What podman needs where there is neither systemd nor a control group of version 2, as in many CI machines."""


class NoContainersError(Exception):
    """Containers cannot be made here; the text is the reason."""


@dataclass(frozen=True)
class Engine:
    """`env` leads the program to a storage of its own, in which `image` is; `args` are those of the backend."""

    program: str
    env: Mapping[str, str]
    image: str

    @property
    def args(self) -> dict[str, str | list[str]]:
        """Arguments of the backend. The Python of the tests must be found inside by the same path."""
        prefix = Path(sys.base_prefix)
        mounts = [f"{prefix}:{prefix}:ro"] if prefix == Path("/usr/local") else []
        return {"image": self.image, **({"mount": mounts} if mounts else {})}

    @property
    def words(self) -> list[str]:
        """The same as options of the command line."""
        values = {name: value if isinstance(value, list) else [value] for name, value in self.args.items()}
        return [
            word for name, items in values.items() for item in items for word in ("--backend-args", f"{name}={item}")
        ]

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Call the engine; raises `CalledProcessError`."""
        facts = {"env": {**os.environ, **self.env}, "text": True, "capture_output": True, "timeout": SECONDS}
        return subprocess.run([self.program, *words], check=True, **{**facts, **options})

    def containers(self, label: str) -> list[str]:
        """Names of the containers with a label."""
        return self.run("ps", "--all", "--format", "{{.Names}}", "--filter", f"label={label}").stdout.split()


def podman() -> Engine:
    """A podman that works, else the test is skipped."""
    import pytest

    found = _found()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def _found() -> Engine | str:
    try:
        return provide()
    except NoContainersError as error:
        return str(error)


def provide() -> Engine:
    """Make podman ready; raises `NoContainersError`."""
    if sys.platform != "linux" or shutil.which("podman") is None:
        raise NoContainersError("podman is not installed")
    root = containers_root()
    with locked(root.with_name(root.name + ".lock")):
        archive = root_file_system(root)
        return _with_image(root, archive)


@dataclass(frozen=True)
class OrdinaryUser:
    """A user of this machine for whom podman works without root; files go below `home`, outside of what is root's."""

    engine: Engine
    uid: int
    gid: int
    home: Path


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """A user made for the context, else the test is skipped."""
    import pytest

    name = f"vally-test-{os.getpid()}"
    try:
        if os.geteuid() != 0 or not (shutil.which("useradd") and shutil.which("newuidmap")):
            raise NoContainersError("only root can make a user, and one without root needs newuidmap for containers")
        program = podman()
        _run(["useradd", "--create-home", "--base-dir", "/var/tmp", name])
        try:
            yield _without_root(program, pwd.getpwnam(name))
        finally:
            _forget(pwd.getpwnam(name))
    except NoContainersError as error:
        pytest.skip(str(error))


def _forget(user: pwd.struct_passwd) -> None:
    """Remove a user with all that is left of it, such as the process that podman keeps for its namespaces."""
    for process in psutil.process_iter(["uids"]):
        uids = process.info["uids"]
        if uids is not None and uids.real == user.pw_uid:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    _run(["userdel", "--force", user.pw_name])
    shutil.rmtree(user.pw_dir)


def _without_root(program: Engine, user: pwd.struct_passwd) -> OrdinaryUser:
    home = Path(user.pw_dir)
    settings = Path(program.env["CONTAINERS_CONF"]).read_text()
    env = {**_settings(home, "own", settings), "HOME": user.pw_dir, "XDG_RUNTIME_DIR": f"{home}/runtime"}
    (home / "runtime").mkdir(mode=0o700)
    for path in home.iterdir():
        os.chown(path, user.pw_uid, user.pw_gid)
    found = OrdinaryUser(Engine("podman", env, program.image), user.pw_uid, user.pw_gid, home)
    identity = {"user": found.uid, "group": found.gid, "extra_groups": [], "cwd": "/"}
    try:
        with root_file_system(containers_root()).open("rb") as archive:
            found.engine.run("import", "-", program.image, stdin=archive, **identity)
        found.engine.run("run", "--rm", "--network=none", program.image, "true", **identity)
    except subprocess.CalledProcessError as error:
        raise NoContainersError(f"podman cannot start containers without root here: {error.stderr[-500:]}") from error
    return found


@contextlib.contextmanager
def docker() -> Iterator[Engine]:
    """A docker whose daemon runs for as long as the context, else the test is skipped.

    The daemon has namespaces of its own, so that it changes nothing of this machine; without a bridge its containers
    have the networks `none` and `host` only.
    """
    import pytest

    try:
        if os.geteuid() != 0 or shutil.which("dockerd") is None or shutil.which("docker") is None:
            raise NoContainersError("a daemon of docker can be started by root and with dockerd only")
        with locked(containers_root().with_name("containers.lock")):
            archive = root_file_system(containers_root())
        with tempfile.TemporaryDirectory(prefix="vally-docker-") as directory, _daemon(Path(directory)) as env:
            engine = Engine("docker", env, f"vally-test:{archive.stem}")
            engine.run("import", str(archive), engine.image)
            yield engine
    except NoContainersError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def _daemon(directory: Path) -> Iterator[dict[str, str]]:
    env = {"DOCKER_HOST": f"unix://{directory}/socket"}
    words = ["dockerd", "--data-root", directory / "data", "--exec-root", directory / "run", "-H", env["DOCKER_HOST"]]
    words += ["--pidfile", directory / "pid", "--bridge=none", "--iptables=false", "--ip-forward=false"]
    with (directory / "log").open("wb") as log:
        daemon = subprocess.Popen(["unshare", "-n", "-m", *words], stdout=log, stderr=log, start_new_session=True)
    try:
        until = time.monotonic() + STARTING_SECONDS
        while subprocess.run(
            ["docker", "version"], env={**os.environ, **env}, capture_output=True, check=False
        ).returncode:
            if daemon.poll() is not None or time.monotonic() > until:
                raise NoContainersError(f"dockerd does not start: {(directory / 'log').read_text()[-500:]}")
            time.sleep(0.2)
        yield env
    finally:
        daemon.terminate()
        daemon.wait(STARTING_SECONDS)


def containers_root() -> Path:
    """Where images are kept between runs."""
    return agents_root().with_name("containers")


def root_file_system(root: Path) -> Path:
    """An archive of a Debian, or of what else runs here, that agents can live in; raises `NoContainersError`."""
    archive = root / f"root-{_key()}.tar"
    if archive.exists():
        return archive
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise NoContainersError("an image can be bootstrapped by root and with debootstrap only")
    mirror, suite = _mirror()
    tree = root / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    _run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(tree), mirror])
    node = shutil.which("node")
    if node is not None:
        shutil.copy(Path(node).resolve(), tree / "usr/bin/node")
    made = archive.with_suffix(".new")
    left_out = [
        f"--exclude=./{path}" for path in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")
    ]
    _run(["tar", "-C", str(tree), *left_out, "-cf", str(made), "."])
    shutil.rmtree(tree)
    made.rename(archive)
    return archive


def _key() -> str:
    facts = [PACKAGES, Path("/etc/os-release").read_text(), shutil.which("node") or ""]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:12]


def _mirror() -> tuple[str, str]:
    """Where apt gets the packages of this system from, and what it calls them."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release.get("VERSION_CODENAME", "").strip('"')
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
    for line in listed.splitlines():
        words = line.split()
        if words[1:] == [suite, "main"]:
            return words[0], suite
    raise NoContainersError("apt does not tell where it gets the packages of this system from")


def _with_image(root: Path, archive: Path) -> Engine:
    """Import the archive, with the settings under which a container starts here."""
    problem = ""
    for name, settings in (("plain", ""), ("reference", REFERENCE)):
        found = Engine("podman", _settings(root, name, settings), f"vally-test:{archive.stem}")
        try:
            if subprocess.run(["podman", "image", "exists", found.image], env={**os.environ, **found.env}).returncode:
                found.run("import", str(archive), found.image)
            found.run("run", "--rm", "--network=none", "--memory=256m", "--pids-limit=50", found.image, "true")
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            problem = str(getattr(error, "stderr", "") or error).strip()
        else:
            return found
    raise NoContainersError(f"podman cannot start containers here: {problem[-500:]}")


def _settings(root: Path, name: str, settings: str) -> dict[str, str]:
    storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{root}/storage"\nrunroot = "{root}/run"\n'
    files = {"CONTAINERS_CONF": root / f"{name}.conf", "CONTAINERS_STORAGE_CONF": root / "storage.conf"}
    files["CONTAINERS_CONF"].write_text(settings)
    files["CONTAINERS_STORAGE_CONF"].write_text(storage)
    return {variable: str(file) for variable, file in files.items()}


def _run(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoContainersError(f"{words[0]} failed: {error}") from error
    if done.returncode != 0:
        raise NoContainersError(f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(provide().image)
    except NoContainersError as missing:
        raise SystemExit(str(missing)) from None
