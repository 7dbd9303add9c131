"""From what the arguments name to an image that is there, and what there is to know of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from vally import BackendError
from vally_backend_container.config import ContainerArgs
from vally_backend_container.engine import UNAVAILABLE, Engine, EngineError
from vally_backend_container.platforms import parse_platform

BUILD_SECONDS = 3600.0
OWN_IMAGE = "use another image with --backend-args image=NAME, or a Dockerfile with --backend-args dockerfile=FILE"
REPOSITORY = "vally-task"
DEFAULT_DOCKERFILE = Path(__file__).parent / "task_image" / "Dockerfile"


@dataclass(frozen=True)
class Image:
    """An image that is there. `name` is what the user knows it by, `digest` what it is by content."""

    name: str
    digest: str


class Images:
    """Finds, fetches and builds images; `say` tells the user of what takes long."""

    def __init__(self, engine: Engine, args: ContainerArgs, base: Path, say: Callable[[str], None]) -> None:
        self._engine = engine
        self._args = args
        self._base = base
        self._say = say

    async def task(self) -> Image:
        """The image of set-up commands and agents. Raises BackendError."""
        if self._args.image is not None:
            return await self.named(self._args.image)
        if self._args.dockerfile is not None:
            return await self._built()
        try:
            return await self._built()
        except BackendError as error:
            raise BackendError(error.message, code=UNAVAILABLE, hints=(OWN_IMAGE,)) from None

    async def named(self, name: str) -> Image:
        """An image by its name, fetched when `pull` says so. Raises BackendError."""
        found = await self._fetched(name)
        if found is not None:
            return found
        self._say(f"image '{name}' is fetched, which may take minutes")
        await self._call(f"image '{name}' cannot be fetched", "pull", "--quiet", *self._platform(), name)
        return await self._present(name)

    async def outlook(self) -> list[Image | str]:
        """The images as they are there; for one that is not, what a run does to get it. Raises BackendError."""
        task = self._args.image
        names = list(dict.fromkeys(name for name in (task, self._args.grade_image) if name is not None))
        seen: list[Image | str] = []
        if task is None:
            name, dockerfile = await self._tag()
            found = await self._digest(name)
            source = "the default Dockerfile" if self._args.dockerfile is None else f"'{dockerfile}'"
            seen.append(Image(name, found) if found else f"a run builds its image from {source} first")
        return seen + [await self._fetched(name) or f"a run fetches image '{name}' first" for name in names]

    async def _fetched(self, name: str) -> Image | None:
        """An image that is there and need not be fetched. Raises BackendError when it must not be, and is not there."""
        found = None if self._args.pull == "always" else await self._digest(name)
        if found is not None and await self._fits(name):
            return Image(name, found)
        if self._args.pull == "never":
            wanted = f" for '{self._args.platform}'" if found is not None else ""
            raise _unusable(f"there is no image '{name}'{wanted}, and 'pull=never' forbids to fetch it")
        return None

    async def _built(self) -> Image:
        """Build once per content of the Dockerfile and its directory; the tag says which."""
        name, dockerfile = await self._tag()
        found = await self._digest(name)
        if found is not None:
            return Image(name, found)
        self._say(f"image '{name}' is built from '{dockerfile}', which may take minutes")
        pull = ["--pull"] if self._args.pull == "always" else []
        words = ["build", "--quiet", *pull, *self._platform(), "--tag", name]
        words += ["--file", str(dockerfile), str(dockerfile.parent)]
        await self._call(f"no image can be built from '{dockerfile}'", *words)
        return await self._present(name)

    async def _tag(self) -> tuple[str, Path]:
        """What the image of the Dockerfile is called, and that file. Raises BackendError."""
        given = self._args.dockerfile
        dockerfile = DEFAULT_DOCKERFILE if given is None else self._base / Path(given).expanduser()
        if not dockerfile.is_file():
            raise _unusable(f"the file '{dockerfile}' of 'dockerfile' does not exist")
        dockerfile = dockerfile.resolve()
        try:
            digest = await anyio.to_thread.run_sync(context_digest, dockerfile, self._args.platform or "")
        except OSError as error:
            raise _unusable(f"the directory of '{dockerfile}' cannot be read: {error}") from error
        return f"{REPOSITORY}:{digest[:24]}", dockerfile

    def _platform(self) -> list[str]:
        return [] if self._args.platform is None else ["--platform", self._args.platform]

    async def _call(self, what: str, *words: str) -> None:
        try:
            await self._engine.call(*words, seconds=BUILD_SECONDS)
        except EngineError as error:
            raise _unusable(f"{what}: {error}") from None

    async def _digest(self, name: str) -> str | None:
        """What an image is by content; None when it is not there."""
        try:
            text = await self._engine.call("image", "inspect", "--format", "{{.Id}}", name)
        except EngineError as error:
            if error.returncode is None:
                raise _unusable(str(error)) from None
            return None
        return "sha256:" + text.strip().removeprefix("sha256:")

    async def _fits(self, name: str) -> bool:
        """Whether an image that is there is of the platform that is asked for; engines would take any."""
        if self._args.platform is None:
            return True
        try:
            text = await self._engine.call("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", name)
            return parse_platform(text.strip()) == parse_platform(self._args.platform)
        except (EngineError, ValueError):
            # What is not known of an image is no reason to fetch it.
            return True

    async def _present(self, name: str) -> Image:
        found = await self._digest(name)
        if found is None:
            raise _unusable(f"the engine made image '{name}' and does not know it now")
        return Image(name, found)


def _unusable(problem: str) -> BackendError:
    return BackendError(problem, code=UNAVAILABLE)


def context_digest(dockerfile: Path, platform: str) -> str:
    """SHA-256 (hex) over a Dockerfile, the platform, and names, modes and contents of all in its directory.

    Raises OSError.
    """
    digest = hashlib.sha256(f"1\0{platform}\0{dockerfile.name}\0".encode())
    for path in _below(dockerfile.parent):
        found = path.lstat()
        digest.update(os.fsencode(path.relative_to(dockerfile.parent)) + f"\0{found.st_mode:o}\0".encode())
        if stat.S_ISLNK(found.st_mode):
            digest.update(os.fsencode(path.readlink()) + b"\0")
        elif stat.S_ISREG(found.st_mode):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _below(directory: Path) -> Iterator[Path]:
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        # Python writes its caches whenever it likes; no image is meant to depend on them.
        if entry.name == "__pycache__":
            continue
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))
