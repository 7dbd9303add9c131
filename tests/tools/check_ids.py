"""Compare the examples of a chapter on graders with those that are listed here, and with the test cases.

Usage: python tests/tools/check_ids.py CHAPTER

An example is a row of a table whose first cell is its id. The exit code is 1 when anything differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

from example_ids import GRADER_EXAMPLES, expected_ids, ids_with_a_case

_ROW = re.compile(r"^\| *([A-Z]{2}-[0-9]+) *\|", re.MULTILINE)


def differences(chapter: Path) -> list[str]:
    """What stands in one of the chapter and the list only, sorted by id."""
    written = set(_ROW.findall(chapter.read_text(encoding="utf-8")))
    listed = {id_ for prefix, family in GRADER_EXAMPLES.items() for id_ in family.ids(prefix)}
    found = [(id_, "the chapter", "the list") for id_ in written - listed]
    found += [(id_, "the list", "the chapter") for id_ in listed - written]
    return [f"{id_} stands in {one} and not in {other}" for id_, one, other in sorted(found)]


def untested() -> list[str]:
    """The ids without a test case."""
    expected = expected_ids()
    found = {place: ids_with_a_case(place) for place in set(expected.values())}
    return sorted(id_ for id_, place in expected.items() if id_ not in found[place])


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    lines = [*differences(Path(sys.argv[1])), *(f"{id_} has no test case" for id_ in untested())]
    print("\n".join(lines) or f"{len(expected_ids())} examples, each with a test case")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
