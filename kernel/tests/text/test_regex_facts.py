"""What is claimed about a pattern without a text is what the engine does with every text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vally import InvalidRegex, compile_regex, matches_every_text, matches_no_text

EVERY = [
    "a*", "x?", "^", "$", "foo|", "(foo)?", "^a*", "a*$", "(?i)a*", "(?=)", "a{0}", "(?:)", "(?m)^", "(?:a|)+",
    r"\d*\.?\d*", "(?!(?!))", "(?=a|$)", "(a^)*", "[\\s\\S]*", "(?<n>a)*", "x{0,3}?",
]  # fmt: skip
NEVER = [
    "(?!)", "[]", "a^b", "$a", "(a^)+", "a(?=^)", "(?<!)a", "(?!a*)b", "(^a){2}", "[]a]", "(?:$a|b^)", "x(?!b|)",
    r"\w+^\w+", "(?s)$.",
]  # fmt: skip
NEITHER = [
    "a", ".+", "^$", "$^", r"\b", r"\B", "[^]", "(?m)a^b", "(?m)$\n^a", "(?!a)", "a|[]", "x{", "{", r"\u{2}", "(?i:a)",
    r"(?<n>a)\k<n>", r"(a)\1", "(?=$)a", "(?m:a^b)", r"\x", r"\c", r"[\]]", "[^]]", "(?<=a)b",
]  # fmt: skip
PIECES = st.sampled_from(
    ["a", "b", ".", "^", "$", r"\b", "(?!)", "[]", "[^a]", r"\n", "(?=a)", "(?!a)", "(?:a|)", "(?m:^)"]
)
TEXTS = st.text(alphabet="ab\n ", max_size=6)


@pytest.mark.parametrize("pattern", EVERY)
def test_patterns_that_match_every_text(pattern: str) -> None:
    assert matches_every_text(pattern)
    assert not matches_no_text(pattern)


@pytest.mark.parametrize("pattern", NEVER)
def test_patterns_that_match_no_text(pattern: str) -> None:
    assert matches_no_text(pattern)
    assert not matches_every_text(pattern)


@pytest.mark.parametrize("pattern", NEITHER)
def test_patterns_that_depend_on_the_text(pattern: str) -> None:
    assert not matches_every_text(pattern)
    assert not matches_no_text(pattern)


@pytest.mark.parametrize("pattern", ["", "(", "(?i)", "(" * 500 + ")" * 500, "a**"])
def test_nothing_is_claimed_about_patterns_that_cannot_be_used(pattern: str) -> None:
    assert not matches_every_text(pattern)
    assert not matches_no_text(pattern)


def patterns() -> st.SearchStrategy[str]:
    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(inner, inner)
        quantified = st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,1}", "{2,}?"]))
        return (
            pairs.map("".join)
            | pairs.map("|".join)
            | quantified.map(lambda pair: f"(?:{pair[0]}){pair[1]}")
            | inner.map(lambda text: f"(?={text})")
            | inner.map(lambda text: f"(?!{text})")
            | inner.map(lambda text: f"(?<={text})")
            | inner.map(lambda text: f"(?<!{text})")
        )

    return st.recursive(PIECES, grow, max_leaves=8)


@settings(max_examples=300, deadline=None)
@given(pattern=patterns(), texts=st.lists(TEXTS, min_size=1, max_size=8), flag=st.sampled_from(["", "(?m)", "(?s)"]))
def test_no_text_contradicts_a_claim(pattern: str, texts: list[str], flag: str) -> None:
    try:
        regex = compile_regex(flag + pattern)
    except InvalidRegex:
        return
    for text in texts:
        found = regex.search(text) is not None
        assert found or not matches_every_text(flag + pattern)
        assert not found or not matches_no_text(flag + pattern)
