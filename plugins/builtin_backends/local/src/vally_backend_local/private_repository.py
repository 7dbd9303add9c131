"""The git directory, index and object directory of one trial, outside the workspace that they describe."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from vally_backend_local.blocking_files import blocking_file
from vally_backend_local.git_process import GitProcess, Limits, SnapshotError

MANY_FILES = 64

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

# Written by hand instead of by `git init`: one process less, and no setting that depends on git's version.
# A text is compared line by line only up to the threshold, because git needs ten times its size in memory for that.
# Objects are thrown away with the trial, so they are neither compressed nor flushed. Names that other systems read
# as `.git` are harmless in a repository that nobody checks out.
CONFIG = """\
[core]
\trepositoryFormatVersion = 0
\tbare = false
\tfileMode = {file_mode}
\tsymlinks = true
\tignoreCase = {ignore_case}
\tprecomposeUnicode = false
\tprotectHFS = false
\tprotectNTFS = {protect_ntfs}
\tautocrlf = false
\tsafecrlf = false
\tquotePath = false
\tabbrev = 7
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\tsparseCheckout = false
\tlooseCompression = 0
\tfsync = none
[pack]
\tcompression = 0
[index]
\tversion = 2
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

# Overrides every .gitattributes of the workspace: contents are stored as they are, and no attribute makes a text
# look binary. `!` and not `-` where git knows no "off".
ATTRIBUTES = "* -text -filter -ident !working-tree-encoding !eol !diff\n"

DIFF_OPTIONS = (
    "-r",
    "-p",
    "--unified=3",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-color",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
    "--ignore-submodules=none",
)


class PrivateRepository:
    """One index over one workspace; each method is one git process at most and raises SnapshotError."""

    def __init__(self, directory: Path, workspace: Path, *, git: str, limits: Limits) -> None:
        self.directory = directory
        self.workspace = workspace
        self.index = directory / "index"
        self.objects = directory / "objects"
        self._loaded: str | None = None
        self._version: tuple[int, int] | None = None
        self._git = GitProcess(git, self._environment(), directory, limits, self._obstacle)

    def create(self) -> None:
        """Write the empty repository."""
        try:
            self._create()
        except OSError as error:
            raise SnapshotError(f"cannot write to {self.directory}: {error.strerror}") from error

    def cancel(self) -> None:
        self._git.cancel()

    def use_objects_of(self, objects: Path, index: Path, tree: str) -> None:
        """Read objects from another directory as well, and start from a copy of an index that holds `tree`."""
        try:
            shutil.copyfile(index, self.index)
            (self.objects / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
        except OSError as error:
            raise SnapshotError(f"cannot use the cached baseline: {error.strerror}") from error
        self._loaded = tree

    def read_tree(self, tree: str) -> None:
        """Fill the index from a tree, without any file status: git then hashes whatever it is told to look at."""
        if self._loaded == tree:
            return
        self._forget_index()
        if tree != EMPTY_TREE:
            self._run("read-tree", tree, cwd=self.directory)
        self._loaded = tree

    def holds(self, tree: str) -> bool:
        """Whether the index is known to be that of `tree`."""
        return self._loaded == tree

    def others(self) -> list[bytes]:
        """Paths of the workspace that are neither in the index nor ignored; nested repositories end in a slash."""
        output = self._git.run(["ls-files", "-z", "--others", "--exclude-standard"], cwd=self.workspace)
        _refuse_unreadable(output.stderr)
        return [path for path in output.stdout.split(b"\0") if path]

    def drop(self, paths: Iterable[bytes]) -> None:
        """Remove entries from the index, whatever is in the workspace."""
        self._index_info([b"0 " + b"0" * 40 + b"\t" + path for path in paths])

    def add_links(self, links: Mapping[bytes, str]) -> None:
        """Put nested repositories into the index."""
        self._index_info([b"160000 " + commit.encode() + b"\t" + path for path, commit in links.items()])

    def stage(self, paths: Sequence[bytes]) -> None:
        """Hash these files and links into the object directory and the index; absent ones leave the index."""
        if not paths:
            return
        self._loaded = None
        # Contents above the threshold are streamed, which bounds memory, and all of one command go into one pack:
        # for many files far cheaper than an object file each.
        threshold = "1" if len(paths) >= MANY_FILES and self._packs_in_bulk() else "1m"
        self._run(
            *("-c", f"core.bigFileThreshold={threshold}"),
            *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
            cwd=self.workspace,
            stdin=b"\0".join(paths) + b"\0",
        )

    def write_tree(self) -> str:
        """Store the index as a tree and return its id."""
        return self._run("write-tree", cwd=self.directory).decode("ascii").strip()

    def diff(self, before: str, after: str, sink: Callable[[bytes], object]) -> None:
        """Hand the unified diff of two trees to `sink` in pieces, file names unquoted as far as git does it."""
        self._git.stream(["diff-tree", *DIFF_OPTIONS, before, after], sink, cwd=self.directory)

    def patch(self, before: str, after: str, sink: Callable[[bytes], object]) -> None:
        """Hand the same change to `sink` in the form that `git apply` reproduces byte by byte."""
        # Binary parts are compressed with the setting for loose objects.
        options = ["-c", "core.looseCompression=6", "diff-tree", *DIFF_OPTIONS, "--binary", "--full-index"]
        self._git.stream([*options, before, after], sink, cwd=self.directory)

    def _packs_in_bulk(self) -> bool:
        """Whether this git puts all contents of one `update-index` into one pack; before 2.37 each got its own."""
        if self._version is None:
            found = re.match(rb"git version (\d+)\.(\d+)", self._run("version", cwd=self.directory))
            self._version = (int(found[1]), int(found[2])) if found else (0, 0)
        return self._version >= (2, 37)

    def _obstacle(self) -> str | None:
        path = blocking_file(self.workspace)
        return None if path is None else f"cannot read '{path}': not a regular file"

    def _index_info(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        self._loaded = None
        stdin = b"\0".join(lines) + b"\0"
        self._run("update-index", "--add", "--replace", "-z", "--index-info", cwd=self.workspace, stdin=stdin)

    def _run(self, *args: str, cwd: Path, stdin: bytes = b"") -> bytes:
        return self._git.run(args, cwd=cwd, stdin=stdin).stdout

    def _create(self) -> None:
        for name in ("objects/info", "objects/pack", "refs", "info"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        (self.directory / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        (self.directory / "info" / "attributes").write_text(ATTRIBUTES, encoding="ascii")
        config = self.directory / "config"
        config.touch()
        settings = {
            "file_mode": "true" if os.name == "posix" else "false",
            "protect_ntfs": "false" if os.name == "posix" else "true",
            "ignore_case": "true" if (self.directory / "CONFIG").exists() else "false",
        }
        config.write_text(CONFIG.format(**settings), encoding="ascii")

    def _forget_index(self) -> None:
        # A killed git leaves its lock behind.
        for path in (self.index, self.index.with_name("index.lock")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def _environment(self) -> dict[str, str]:
        return {
            "GIT_DIR": str(self.directory),
            "GIT_WORK_TREE": str(self.workspace),
            "GIT_INDEX_FILE": str(self.index),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(self.directory),
            "XDG_CONFIG_HOME": str(self.directory),
            "LC_ALL": "C",
        }


def _refuse_unreadable(stderr: bytes) -> None:
    """Git only warns of a directory or .gitignore that it cannot read, and would show a wrong diff."""
    for line in stderr.decode("utf-8", errors="replace").splitlines():
        text = line.removeprefix("warning: ")
        for prefix in ("could not open directory ", "unable to access "):
            # A .gitignore that is a link is not followed, which is no failure.
            if text.startswith(prefix) and "symbolic links" not in text:
                raise SnapshotError(f"cannot read {text.removeprefix(prefix)}")
