"""Compare the regular expression dialect with recorded results of a JavaScript engine.

Usage: check_regex_corpus.py CASES.jsonl, each line {"pattern", "text", "js": null or {"index", "length"}}.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vally.text.regex import InvalidRegex, compile_regex


def found(pattern: str, text: str) -> Any:
    """The result in the form of the recorded ones."""
    try:
        match = compile_regex(pattern).search(text)
    except InvalidRegex as error:
        return {"error": error.message}
    return None if match is None else {"index": match.index, "length": match.length}


def disagreements(path: Path) -> Iterator[tuple[dict[str, Any], Any] | None]:
    """None for each case that agrees, (case, our result) for each that does not."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            ours = found(case["pattern"], case["text"])
            yield None if ours == case["js"] else (case, ours)


def main(path: str) -> int:
    counts: Counter[str] = Counter()
    for difference in disagreements(Path(path)):
        counts["agree" if difference is None else "differ"] += 1
        if difference is not None:
            print(json.dumps({**difference[0], "ours": difference[1]}))
    print(f"{counts['agree']} agree, {counts['differ']} differ")
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
