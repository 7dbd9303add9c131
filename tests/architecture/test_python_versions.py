"""Every release of Python 3.11 will do, also the one of Debian 12, which is older than some backports to 3.11."""

from __future__ import annotations

import ast

from checkout import MEMBERS, ROOT

# These take the argument `filter` since 3.11.4. Older ones ignore the attribute `extraction_filter` of an archive.
EXTRACTS = {"extract", "extractall", "unpack_archive"}


def late_arguments(source: str) -> list[int]:
    """The lines in which something is extracted with the argument `filter`."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [(call, getattr(call.func, "attr", getattr(call.func, "id", ""))) for call in calls]
    return [
        call.lineno
        for call, name in named
        if name in EXTRACTS and any(keyword.arg == "filter" for keyword in call.keywords)
    ]


def test_archives_are_extracted_without_the_argument_of_3_11_4() -> None:
    assert late_arguments("tar.extractall('x', filter='data')\nunpack_archive('x', filter='data')") == [1, 2]
    files = [path for member in MEMBERS for path in member.path.rglob("*.py")] + list((ROOT / "tests").rglob("*.py"))
    assert len(files) > len(MEMBERS)
    found = {str(path): lines for path in files if (lines := late_arguments(path.read_text(encoding="utf-8")))}
    assert not found
