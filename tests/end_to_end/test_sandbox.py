"""What only the sandbox has; see `test_confined` for what it shares with other backends."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined import EXPECTED, Project, args, as_nobody, confined_project
from programs import records_of

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with confined_project("sandbox", tmp_path) as made:
        yield made


@pytest.mark.parametrize("place", ["/dev/x", "/run/x"])
def test_the_system_s_own_places_cannot_be_written(place: str, project: Project) -> None:
    said = project.output(f"echo x >> {place} && echo REACHED; echo end")
    assert "REACHED" not in said
    assert not Path(place).exists()


def test_a_program_inherits_nothing_but_its_streams(project: Project) -> None:
    said = project.output("ls /proc/$$/fd | tr '\\n' ' '; trap; ulimit -c; grep SigIgn /proc/$$/status")
    descriptors = said.split()[:3]
    assert descriptors == ["0", "1", "2"]
    assert f"{0:016x}" in said


def test_there_is_no_way_to_more_rights(project: Project) -> None:
    lines = "umount /home\nmount -t tmpfs x /mnt\nunshare -r umount /home\ngrep CapEff /proc/self/status\nls -A /home"
    said = project.output(lines)
    assert "CapEff:\t0000000000000000" in said
    assert said.splitlines()[-1].startswith("CapEff"), "something was seen below /home"


def test_memory_is_bounded(project: Project) -> None:
    said = project.output(f"{sys.executable} -c 'bytearray(2 * 2**30)' 2>&1; echo end", *args("memory=1g"))
    assert "MemoryError" in said
    assert said.strip().endswith("end")


def test_a_bwrap_that_fails_says_why(project: Project, tmp_path: Path) -> None:
    project.write(project.stimulus("echo hi"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    result = project.evaluate(env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert "bwrap: No permissions to create new namespace [sandbox-unavailable]" in result.stderr
    assert "user namespaces" in result.stderr
    assert not (project.root / "out").exists()


def test_further_paths_are_shown_written_and_hidden(project: Project, tmp_path: Path) -> None:
    for name in ("read", "written", "concealed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    words = [f"ro={tmp_path}/read", f"rw={tmp_path}/written", "hide=/usr/share", f"ro={tmp_path}/concealed"]
    words.append(f"hide={tmp_path}/concealed/f")
    script = f"cat {tmp_path}/*/f; echo x > {tmp_path}/written/new; echo x > {tmp_path}/read/new; ls -A /usr/share"
    said = project.output(script, *args(*words))
    assert "readwritten" in said
    assert (tmp_path / "written" / "new").exists()
    assert not (tmp_path / "read" / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_an_ordinary_user_is_confined_too(project: Project) -> None:
    script = (
        f"cat {project.root}/expected.txt; touch /usr/x /var/x {project.outside}/x; id -u; echo x > w.txt; kill -9 $$"
    )
    bomb = "for number in $(seq 100); do sleep 60 & done; echo survived"
    made = {"type": "file-exists", "config": {"path": "w.txt"}}
    project.write(
        project.stimulus(script, made), project.stimulus(bomb, name="bomb"), successExitCodes=[0, 2, 137, 254]
    )
    # pytest's directories are root's own.
    root = Path("/var/tmp") / f"vally-nobody-{os.getpid()}"
    shutil.copytree(project.root, root)
    try:
        for path in (root, *root.iterdir()):
            os.chown(path, 65534, 65534)
        words = ["eval", "-e", "eval.yaml", "--backend", "sandbox", "--backend-args", "pids=40", "--output-dir", "out"]
        done = as_nobody(words, root)
        records = records_of(root)[:-1] if (root / "out").is_dir() else []
    finally:
        shutil.rmtree(root)
    assert records, done.stderr
    by_name = {record["stimulus"]: record for record in records}
    said = by_name["s"]["trajectory"]["output"]
    assert EXPECTED not in said
    assert "65534" in said
    assert by_name["s"]["gradeResult"]["passed"], by_name["s"]["gradeResult"]
    assert "survived" not in json.dumps(by_name["bomb"]["trajectory"]["events"][1:])
    assert "annot fork" in json.dumps(by_name["bomb"])
