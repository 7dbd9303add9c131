"""Near matches of a mistyped name, and the hint that offers them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

# Longer words are no misspellings, and comparing them takes time.
_MAX_WORD = 100


def near_matches(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that `word` may have meant: best first, then alphabetical, at most three."""
    return [] if len(word) > _MAX_WORD else list(_nearest(word, tuple(candidates)))


@lru_cache(maxsize=1024)
def _nearest(word: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """The same mistake tends to be made many times in a file."""
    written = _normalised(word)
    limit = _limit(len(written))
    ranked = []
    for candidate in set(candidates):
        meant = _normalised(candidate)
        # Most candidates differ so much in length that they need not be compared.
        if abs(len(meant) - len(written)) <= limit and (distance := edit_distance(written, meant)) <= limit:
            ranked.append((distance, candidate))
    return tuple(candidate for _, candidate in sorted(ranked)[:3])


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the hint `did you mean 'a', 'b' or 'c'?`, or None when nothing is near."""
    quoted = [f"'{match}'" for match in near_matches(word, candidates)]
    if not quoted:
        return None
    *others, last = quoted
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def edit_distance(left: str, right: str) -> int:
    """Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1 each."""
    older: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        older, previous = previous, row
    return previous[-1]


def _normalised(word: str) -> str:
    return word.lower().translate({ord("-"): None, ord("_"): None, ord(" "): None, ord("\t"): None})


def _limit(length: int) -> int:
    """The largest distance at which a candidate for a word of this length qualifies; -1 when none does."""
    limit = 1 if length <= 4 else 2 if length <= 8 else 3
    return min(limit, (length - 1) // 2)
