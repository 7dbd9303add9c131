"""What is staged is made once and copied: same content for every trial, nothing shared between them."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from pathlib import Path

import anyio
import pytest

from vally import Environment, StagedFile
from vally.testing import ScriptedExecutor
from vally_backend_local import workspaces
from vally_backend_local.copying import copy_tree, remove_tree
from vally_backend_local.entry_store import EntryStore


@pytest.fixture
def fixture(bench) -> Path:
    root = bench.project.file("fixture/a.txt", "a\n").parent
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    (root / "empty").mkdir()
    return root


def entries(bench) -> list[str]:
    root = bench.cache / "workspaces"
    return sorted(path.name for path in root.iterdir() if not path.name.startswith(".")) if root.is_dir() else []


def facts(root: Path) -> dict[str, tuple[int, str]]:
    found = {}
    for path in sorted(root.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[path.relative_to(root).as_posix()] = (path.lstat().st_mode, content)
    return found


def test_a_tree_is_made_once_and_copied(bench, fixture: Path, monkeypatch) -> None:
    made = []
    populate = workspaces.WorkspaceFiller._populate
    monkeypatch.setattr(workspaces.WorkspaceFiller, "_populate", lambda *args: made.append(args[1]) or populate(*args))
    seen = []
    executor = ScriptedExecutor([lambda _, options: seen.append(facts(options.work_dir))])
    stimulus = bench.stimulus(environment=bench.staged((fixture, ".")))

    async def main(backend):
        for _ in range(3):
            await bench.attempt(backend, stimulus, executor)

    bench.with_backend(main)
    bench.with_backend(main)
    assert len(made) == len(entries(bench)) == 1
    assert seen == [facts(fixture)] * 6


def test_a_trial_changes_no_other_and_no_source(bench, fixture: Path) -> None:
    before = facts(fixture)

    def spoil(_, options):
        with (options.work_dir / "a.txt").open("r+") as file:
            file.write("X")
        (options.work_dir / "run.sh").chmod(0o600)
        (options.work_dir / "empty" / "new").write_text("new")

    seen = []
    executor = ScriptedExecutor([lambda _, options: seen.append(facts(options.work_dir)), spoil])
    stimulus = bench.stimulus(bench.diff_has("+X"), environment=bench.staged((fixture, ".")))

    async def main(backend):
        return [await bench.attempt(backend, stimulus, executor) for _ in range(3)]

    assert all(outcome.grade.passed for outcome in bench.with_backend(main))
    assert seen == [before] * 3
    assert facts(fixture) == before


def test_no_inode_is_shared(bench, fixture: Path) -> None:
    inodes = []
    executor = ScriptedExecutor(
        [lambda _, options: inodes.append({path.stat().st_ino for path in options.work_dir.rglob("*")})]
    )
    stimulus = bench.stimulus(environment=bench.staged((fixture, ".")))
    bench.run(stimulus, executor)
    kept = {path.stat().st_ino for path in (bench.cache / "workspaces").rglob("*")}
    assert not inodes[0] & kept


@pytest.mark.parametrize("change", ["content", "mode", "link", "name", "dest", "root"])
def test_the_key_depends_on_everything(bench, fixture: Path, change: str) -> None:
    environment = bench.staged((fixture, "."))
    bench.run(bench.stimulus(environment=environment))
    if change == "content":
        (fixture / "a.txt").write_text("b\n")
    elif change == "mode":
        (fixture / "a.txt").chmod(0o755)
    elif change == "link":
        (fixture / "link").unlink()
        (fixture / "link").symlink_to("run.sh")
    elif change == "name":
        (fixture / "a.txt").rename(fixture / "b.txt")
        (fixture / "link").unlink()
        (fixture / "link").symlink_to("a.txt")
    elif change == "dest":
        environment = bench.staged((fixture, "x"))
    else:
        environment = Environment(files=(StagedFile(src=fixture, dest=".", dest_root="assets"),))
    bench.run(bench.stimulus(environment=environment))
    assert len(entries(bench)) == 2


def test_times_are_no_part_of_the_key(bench, fixture: Path) -> None:
    stimulus = bench.stimulus(environment=bench.staged((fixture, ".")))
    bench.run(stimulus)
    os.utime(fixture / "a.txt", (1, 1))
    bench.run(stimulus)
    assert len(entries(bench)) == 1


def test_commands_switch_the_cache_off(bench, fixture: Path) -> None:
    stimulus = bench.stimulus(environment=bench.staged((fixture, "."), commands=("true",)))
    assert bench.run(stimulus).status == "success"
    assert entries(bench) == []


def test_assets_are_cached_too(bench, fixture: Path) -> None:
    environment = Environment(files=(StagedFile(src=fixture, dest="in", dest_root="assets"),))
    seen = []

    def look(_, options):
        seen.append((list(options.work_dir.iterdir()), (options.assets_dir / "in" / "a.txt").read_text()))

    async def main(backend):
        for _ in range(2):
            outcome = await bench.attempt(backend, bench.stimulus(environment=environment), ScriptedExecutor([look]))
            assert outcome.trajectory.assets_dir

    bench.with_backend(main)
    assert seen == [([], "a\n")] * 2


def test_warnings_of_the_staging_come_with_every_trial(bench, fixture: Path, tmp_path: Path) -> None:
    (fixture / ".git").write_text(f"gitdir: {tmp_path}\n")
    stimulus = bench.stimulus(environment=bench.staged((fixture, ".")))

    async def main(backend):
        return [(await bench.attempt(backend, stimulus)).warnings for _ in range(2)]

    first, second = bench.with_backend(main)
    assert first == second
    assert "points to a repository outside" in first[0]


def test_a_source_that_changes_while_it_is_read_is_read_again(bench, fixture: Path, monkeypatch) -> None:
    populate = workspaces.WorkspaceFiller._populate
    changes = iter(["changed\n"])

    def slowly(*args):
        for text in changes:
            (fixture / "a.txt").write_text(text)
        return populate(*args)

    monkeypatch.setattr(workspaces.WorkspaceFiller, "_populate", slowly)
    stimulus = bench.stimulus(bench.shell("cat a.txt"), environment=bench.staged((fixture, ".")))
    first = bench.run(stimulus)
    (fixture / "a.txt").write_text("a\n")
    second = bench.run(stimulus)
    texts = [outcome.grade.details[0].metadata["stdout"] for outcome in (first, second)]
    assert texts == ["changed", "a"]
    assert len(entries(bench)) == 2


def test_a_source_that_never_rests_is_an_error(bench, fixture: Path, monkeypatch) -> None:
    populate = workspaces.WorkspaceFiller._populate

    def restless(*args):
        (fixture / "a.txt").write_text(str(time.time_ns()))
        return populate(*args)

    monkeypatch.setattr(workspaces.WorkspaceFiller, "_populate", restless)
    outcome = bench.run(bench.stimulus(environment=bench.staged((fixture, "."))))
    assert "keeps changing" in outcome.error.message
    assert entries(bench) == []


def test_a_cache_inside_of_a_source_is_not_used(bench, fixture: Path) -> None:
    stimulus = bench.stimulus(bench.shell("cat fixture/a.txt"), environment=bench.staged((fixture.parent, ".")))

    async def main(backend):
        return await bench.attempt(backend, stimulus)

    bench.root = fixture.parent
    bench.temporary = bench.temporary
    outcome = bench.with_backend(main)
    assert outcome.grade.passed, outcome.error
    assert entries(bench) == []


def test_a_failing_set_up_leaves_no_entry(bench, fixture: Path) -> None:
    (fixture / "out").symlink_to("/etc")
    outcome = bench.run(bench.stimulus(environment=bench.staged((fixture, "."))))
    assert outcome.error.code == "environment-file-escape"
    assert entries(bench) == []
    assert [path for path in (bench.cache / "workspaces").iterdir() if path.is_dir()] == []


def test_many_trials_at_once_make_one_entry(bench, fixture: Path) -> None:
    stimulus = bench.stimulus(bench.shell("cat a.txt"), environment=bench.staged((fixture, ".")))

    async def main(backend):
        outcomes = []

        async def one() -> None:
            outcomes.append(await bench.attempt(backend, stimulus))

        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(one)
        return outcomes

    outcomes = bench.with_backend(main)
    assert [outcome.status for outcome in outcomes] == ["success"] * 12
    assert len(entries(bench)) == 1


def test_later_trials_start_faster_and_alike(bench) -> None:
    root = bench.root / "large"
    for number in range(400):
        path = root / f"d{number % 30}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    stimulus = bench.stimulus(bench.diff_has(), environment=bench.staged((root, ".")))
    executor = ScriptedExecutor([{"d1/f1.txt": "edited\n"}])

    async def main(backend):
        return [await bench.attempt(backend, stimulus, executor) for _ in range(4)]

    first, *later = bench.with_backend(main)
    assert min(outcome.phases.setup_ms for outcome in later) < first.phases.setup_ms / 2
    assert {outcome.trajectory.diff for outcome in later} == {first.trajectory.diff}
    assert (root / "d1" / "f1.txt").read_text() != "edited\n"


def store(tmp_path: Path) -> EntryStore:
    return EntryStore(tmp_path / "store")


def fill(size: int):
    def make(directory: Path) -> None:
        (directory / "data").write_bytes(b"x" * size)

    return make


def test_the_least_recently_used_entries_go(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for number, name in enumerate(("old", "used", "new")):
        with kept.entry(name, fill(1000)) as entry:
            pass
        os.utime(entry, (number, number))
    with kept.entry("used", fill(1)):
        pass
    kept.prune(2500)
    names = {path.name for path in kept.directory.iterdir() if path.is_dir()}
    assert names == {"used", "new"}
    assert not (kept.directory / ".old.lock").exists()


def test_an_entry_in_use_stays(tmp_path: Path) -> None:
    kept = store(tmp_path)
    with kept.entry("busy", fill(1000)) as entry:
        store(tmp_path).prune(0)
        assert (entry / "data").is_file()
    kept.prune(0)
    assert not entry.exists()


def test_an_entry_that_went_is_made_again(tmp_path: Path) -> None:
    kept = store(tmp_path)
    with kept.entry("a", fill(10)):
        pass
    remove_tree(kept.directory / "a")
    with kept.entry("a", fill(20)) as entry:
        assert (entry / "data").stat().st_size == 20


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    def fail(directory: Path) -> None:
        (directory / "half").write_text("")
        raise ZeroDivisionError

    kept = store(tmp_path)
    with pytest.raises(ZeroDivisionError), kept.entry("a", fail):
        pass
    assert [path for path in kept.directory.iterdir() if path.is_dir()] == []
    with kept.entry("a", fill(1)) as entry:
        assert entry.name == "a"


def test_one_thread_makes_what_others_wait_for(tmp_path: Path) -> None:
    kept, made = store(tmp_path), []

    def make(directory: Path) -> None:
        made.append(directory)
        time.sleep(0.05)
        (directory / "data").write_text("")

    def use() -> None:
        with kept.entry("a", make):
            pass

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_left_overs_of_a_crash_go_after_a_day(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for name, age in ((".new-old", 100_000), (".new-fresh", 0)):
        (kept.directory / name).mkdir(parents=True)
        os.utime(kept.directory / name, (time.time() - age, time.time() - age))
    kept.prune(1)
    assert [path.name for path in kept.directory.iterdir()] == [".new-fresh"]


def test_a_copy_is_exact(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "locked").mkdir(parents=True)
    (source / "locked" / "big").write_bytes(os.urandom(700_000))
    (source / "locked" / "sparse").write_bytes(b"")
    os.truncate(source / "locked" / "sparse", 3_000_000)
    (source / "dangling").symlink_to("nowhere")
    (source / "locked" / "big").chmod(0o440)
    os.utime(source / "locked" / "big", ns=(5, 1_234_567_891_234_567_891))
    (source / "locked").chmod(0o555)
    copy_tree(source, tmp_path / "copy")
    copied = tmp_path / "copy" / "locked" / "big"
    assert copied.read_bytes() == (source / "locked" / "big").read_bytes()
    assert (copied.stat().st_mtime_ns, stat.S_IMODE(copied.stat().st_mode)) == (1_234_567_891_234_567_891, 0o440)
    assert (tmp_path / "copy" / "locked" / "sparse").stat().st_size == 3_000_000
    assert str((tmp_path / "copy" / "dangling").readlink()) == "nowhere"
    assert stat.S_IMODE((tmp_path / "copy" / "locked").stat().st_mode) == 0o555
    assert copied.stat().st_nlink == 1
    for root in (source, tmp_path / "copy"):
        (root / "locked").chmod(0o755)
        shutil.rmtree(root)
