"""The tools, each by what the model gets from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from vally import ExecutorOptions, Skill
from vally_executor_openai_tools.outcome import Outcome
from vally_executor_openai_tools.toolbox import Toolbox

pytestmark = pytest.mark.anyio
URL = "http://127.0.0.1:9"
OUTSIDE = "path is outside the workspace"
Use = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def use(options: Callable[..., ExecutorOptions]) -> Use:
    """Call one tool in the workspace."""

    async def call(name: str, config: dict[str, Any] | None = None, fields: Any = None, **arguments: Any) -> Outcome:
        given = options(URL, config, **(fields or {}))
        assert isinstance(given.executor_config, object)
        try:
            return await Toolbox(given.executor_config, given).call(name, arguments)  # type: ignore[arg-type]
        finally:
            await given.runner.kill_all()

    return call


def is_dead(pid: int) -> bool:
    """Whether only the entry of a process is left, because nobody asked for its end yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def failed(outcome: Outcome, code: str) -> str:
    assert (outcome.success, outcome.error_code) == (False, code)
    return outcome.text


@pytest.mark.parametrize(
    ("command", "text", "exit_code"),
    [
        ("echo hello", "hello\n[exit code 0]", 0),
        ("printf hello", "hello\n[exit code 0]", 0),
        ("true", "[exit code 0]", 0),
        ("exit 300", "[exit code 44]", 44),
        ("nonsense-command 2> /dev/null", "[exit code 127]", 127),
        ("echo a; echo b >&2; echo c", "a\nb\nc\n[exit code 0]", 0),
        ("cat", "[exit code 0]", 0),
        ("printf '\\377'", "\ufffd\n[exit code 0]", 0),
        ("echo 'it'\\''s \"quoted\"'", 'it\'s "quoted"\n[exit code 0]', 0),
    ],
)
async def test_bash(use: Use, command: str, text: str, exit_code: int) -> None:
    outcome = await use("bash", command=command)
    assert (outcome.text, outcome.exit_code, outcome.success) == (text, exit_code, True)


async def test_bash_ended_by_a_signal(use: Use) -> None:
    assert failed(await use("bash", command="kill -KILL $$"), "signal") == "[ended by SIGKILL]"


async def test_bash_has_a_time_limit(use: Use) -> None:
    outcome = await use("bash", {"bashTimeout": "300ms"}, command="echo begun; sleep 600")
    assert failed(outcome, "timeout") == "begun\n[timed out after 0.3s]"


async def test_bash_ends_what_it_leaves_in_the_background(use: Use, work_dir: Path) -> None:
    outcome = await use("bash", command="sleep 600 > /dev/null 2>&1 & echo $! > pid")
    assert outcome.text == "[exit code 0]"
    assert is_dead(int((work_dir / "pid").read_text()))


async def test_bash_keeps_head_and_tail_of_long_output(use: Use) -> None:
    outcome = await use("bash", {"toolOutputBytes": 1000}, command="seq 1 100000")
    assert outcome.text.startswith("1\n2\n3\n")
    assert outcome.text.endswith("99999\n100000\n[exit code 0]")
    assert "…[587895 bytes omitted]…" in outcome.text
    assert len(outcome.text) < 1100


async def test_bash_sees_the_environment_of_the_trial_and_no_key(use: Use) -> None:
    fields = {"process_env": {"A_KEY": "a-very-secret-key", "PASSED": "yes", "OTHER": "no"}}
    config = {"provider": {"apiKeyEnv": "A_KEY"}, "passEnv": ["PASSED"]}
    outcome = await use("bash", config, fields, command="env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "PASSED=yes" in outcome.text
    assert "a-very-secret-key" not in outcome.text
    assert "OTHER" not in outcome.text


async def test_many_commands_leave_no_open_files(use: Use) -> None:
    await use("bash", command="true")
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208  # counts, not paths
    for _ in range(5):
        await use("bash", command="true")
    after = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208  # counts, not paths
    assert after <= before


async def test_view_numbers_lines(use: Use, work_dir: Path) -> None:
    (work_dir / "a.txt").write_bytes("one\r\ntwo\u2028still two\n\nfour".encode())
    whole = "1\tone\n2\ttwo\u2028still two\n3\t\n4\tfour"
    assert (await use("view", path="a.txt")).text == whole
    assert (await use("view", path=str(work_dir / "a.txt"))).text == whole
    assert (await use("view", path="a.txt", view_range=[2, 3])).text == "2\ttwo\u2028still two\n3\t"
    assert (await use("view", path="a.txt", view_range=[4, -1])).text == "4\tfour"
    assert (await use("view", path="a.txt", view_range=[3, 99])).text == "3\t\n4\tfour"
    for wrong in ([0, 2], [5, 6], [3, 1], [-1, 2]):
        assert "does not fit a file of 4 lines" in failed(
            await use("view", path="a.txt", view_range=wrong), "invalid-arguments"
        )


async def test_view_of_what_is_no_text_file(use: Use, work_dir: Path) -> None:
    (work_dir / "binary").write_bytes(b"\xff\xfe\0")
    (work_dir / "large").touch()
    os.truncate(work_dir / "large", 11 * 2**20)
    os.mkfifo(work_dir / "pipe")
    assert failed(await use("view", path="binary"), "not-text") == "binary is not a text file in UTF-8"
    assert failed(await use("view", path="large"), "too-large") == "large is larger than 10 MiB"
    assert failed(await use("view", path="pipe"), "not-a-file") == "pipe is not a regular file"
    assert failed(await use("view", path="nothing"), "not-found") == "nothing does not exist"


async def test_view_lists_a_directory(use: Use, work_dir: Path) -> None:
    assert (await use("view", path=".")).text == "(empty directory)"
    (work_dir / "sub").mkdir()
    (work_dir / ".hidden").touch()
    (work_dir / "a.txt").touch()
    assert (await use("view", path=".")).text == ".hidden\na.txt\nsub/"
    for number in range(600):
        (work_dir / "sub" / f"{number:03}").touch()
    assert (await use("view", path="sub")).text.splitlines()[-2:] == ["499", "… (100 more)"]


async def test_create(use: Use, work_dir: Path) -> None:
    assert (await use("create", path="x/y/a.txt", file_text="é\r\n")).text == "Created x/y/a.txt"
    assert (work_dir / "x" / "y" / "a.txt").read_bytes() == "é\r\n".encode()
    again = failed(await use("create", path="x/y/a.txt", file_text=""), "exists")
    assert again == "x/y/a.txt exists already; use edit to change it"
    failed(await use("create", path="x/y", file_text=""), "exists")
    failed(await use("create", path="x/y/a.txt/b", file_text=""), "failed")
    failed(await use("create", path="n" * 300, file_text=""), "failed")


async def test_edit(use: Use, work_dir: Path) -> None:
    file = work_dir / "a.sh"
    file.write_bytes(b"one\r\ntwo\r\ntwo\r\n")
    file.chmod(0o755)
    assert (await use("edit", path="a.sh", old_str="one\r\n", new_str="1\r\n")).text == "Edited a.sh"
    assert file.read_bytes() == b"1\r\ntwo\r\ntwo\r\n"
    assert file.stat().st_mode & 0o777 == 0o755
    twice = failed(await use("edit", path="a.sh", old_str="two", new_str=""), "no-unique-match")
    assert twice == "old_str occurs more than once in a.sh; it must occur exactly once"
    never = failed(await use("edit", path="a.sh", old_str="three", new_str=""), "no-unique-match")
    assert never == "old_str does not occur in a.sh; it must occur exactly once"
    failed(await use("edit", path="a.sh", old_str="", new_str="x"), "invalid-arguments")
    failed(await use("edit", path="b.sh", old_str="x", new_str="y"), "not-found")
    (work_dir / "o.txt").write_text("aaa")
    failed(await use("edit", path="o.txt", old_str="aa", new_str="b"), "no-unique-match")


async def test_glob(use: Use, work_dir: Path) -> None:
    for name in ("a.py", "sub/b.py", "sub/.c.py", "sub/d.txt", ".git/e.py"):
        (work_dir / name).parent.mkdir(exist_ok=True)
        (work_dir / name).touch()
    assert (await use("glob", pattern="**/*.py")).text == "a.py\nsub/.c.py\nsub/b.py"
    assert (await use("glob", pattern="*.py", path="sub")).text == ".c.py\nb.py"
    assert (await use("glob", pattern="*.rs")).text == "no paths match"
    assert failed(await use("glob", pattern="[a"), "invalid-arguments").startswith("invalid pattern '[a': ")
    assert failed(await use("glob", pattern="*", path="a.py"), "not-found") == "a.py is not a directory"
    for number in range(501):
        (work_dir / "sub" / f"{number}.many").touch()
    lines = (await use("glob", pattern="**/*.many")).text.splitlines()
    assert (len(lines), lines[-1]) == (501, "… (more than 500 paths; be more specific)")


async def test_grep(use: Use, work_dir: Path) -> None:
    for name, text in {"a.py": "import os\nIMPORT\n", "sub/b.py": "x\nimport re\n", "c.txt": "import c"}.items():
        (work_dir / name).parent.mkdir(exist_ok=True)
        (work_dir / name).write_text(text)
    (work_dir / "binary.py").write_bytes(b"import \xff")
    os.mkfifo(work_dir / "pipe.py")
    found = "a.py:1: import os\nc.txt:1: import c\nsub/b.py:2: import re"
    assert (await use("grep", pattern="^import")).text == found
    assert (await use("grep", pattern="^import", glob="*.py")).text == "a.py:1: import os\nsub/b.py:2: import re"
    assert (await use("grep", pattern="(?i)^import$", path="a.py")).text == "a.py:2: IMPORT"
    assert (await use("grep", pattern="^import", path="sub", glob="b.*")).text == "sub/b.py:2: import re"
    assert (await use("grep", pattern="nowhere")).text == "no lines match"
    assert failed(await use("grep", pattern="("), "invalid-arguments").startswith("invalid pattern '(': ")
    assert failed(await use("grep", pattern="x", glob="[a"), "invalid-arguments").startswith("invalid pattern '[a': ")
    (work_dir / "many.txt").write_text("y\n" * 300)
    lines = (await use("grep", pattern="y", path="many.txt")).text.splitlines()
    assert (len(lines), lines[-1]) == (201, "… (more than 200 lines; be more specific)")


async def test_skill(use: Use, offer: Callable[..., Skill]) -> None:
    skill = offer(body="\nSay hello.\n")
    (skill.path.parent / "words.txt").touch()
    outcome = await use("skill", fields={"skills": (skill,)}, skill="greeting")
    assert outcome.text == "Say hello.\n\nFiles in greeting:\nSKILL.md\nwords.txt"
    missing = failed(await use("skill", fields={"skills": (skill,)}, skill="x"), "unknown-skill")
    assert missing == "there is no skill 'x'; there are greeting"
    skill.path.write_text("---\nname: [\n---\n")
    assert "cannot be read" in failed(await use("skill", fields={"skills": (skill,)}, skill="greeting"), "failed")
    skill.path.unlink()
    assert "cannot be read" in failed(await use("skill", fields={"skills": (skill,)}, skill="greeting"), "failed")


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("view", {}),
        ("create", {"file_text": "x"}),
        ("edit", {"old_str": "secret", "new_str": "x"}),
        ("glob", {"pattern": "*"}),
        ("grep", {"pattern": "secret"}),
    ],
)
@pytest.mark.parametrize(
    "path", ["../outside/a.txt", "/etc/passwd", "link/a.txt", "dangling", "sub/../../outside", "{outside}/a.txt"]
)
async def test_nothing_leaves_the_workspace(use: Use, work_dir: Path, name: str, more: Any, path: str) -> None:
    outside = work_dir.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("secret")
    (work_dir / "sub").mkdir()
    (work_dir / "link").symlink_to(outside)
    (work_dir / "dangling").symlink_to(outside / "new.txt")
    outcome = await use(name, path=path.format(outside=outside), **more)
    assert failed(outcome, "outside-workspace") == OUTSIDE
    assert [item.name for item in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "secret"


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "{..,sub}/*", "sub/../../*"])
async def test_patterns_that_leave_the_workspace(use: Use, pattern: str) -> None:
    assert failed(await use("glob", pattern=pattern), "outside-workspace").startswith(OUTSIDE)


async def test_searching_follows_no_link_out_of_the_workspace(use: Use, work_dir: Path) -> None:
    (work_dir.parent / "outside").mkdir()
    (work_dir.parent / "outside" / "a.txt").write_text("secret")
    (work_dir / "link").symlink_to(work_dir.parent / "outside")
    (work_dir / "file").symlink_to(work_dir.parent / "outside" / "a.txt")
    assert (await use("grep", pattern="secret")).text == "no lines match"
    assert (await use("glob", pattern="link/*")).text == "no paths match"
    assert (await use("glob", pattern="*")).text == "no paths match"


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
async def test_what_is_no_path(use: Use, path: str) -> None:
    assert (await use("view", path=path)).success is False


async def test_assets_may_be_read(use: Use, tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "a.txt").write_text("asset\n")
    outcome = await use("view", fields={"assets_dir": assets}, path=str(assets / "a.txt"))
    assert outcome.text == "1\tasset"


async def test_long_texts_of_tools_are_cut(use: Use, work_dir: Path) -> None:
    (work_dir / "a.txt").write_text("é" * 5000)
    outcome = await use("view", {"toolOutputBytes": 256}, path="a.txt")
    assert outcome.text.startswith("1\té")
    assert outcome.text.endswith("é")
    assert "bytes omitted]…" in outcome.text
