"""The ECMAScript dialect, its limits and its use from threads."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vally.text import regex as regex_module
from vally.text.regex import InvalidRegex, RegexError, RegexMatch, RegexTimeout, compile_regex

RX_ROWS = [
    ("RX-1", r"def divide", "x\ndef divide(a):", True),
    ("RX-2", r"(?i)HELLO", "say hello", True),
    ("RX-3", r"end$", "the end\n", False),
    ("RX-4", r"(?m)^b$", "a\nb\nc", True),
    ("RX-5", r"a.b", "a\nb", False),
    ("RX-5-s", r"(?s)a.b", "a\nb", True),
    ("RX-6", r"\d", "٣", False),
    ("RX-10", r"(?<=\s+)b", "a  b", True),
]

# What Python's own `re` (or a translation to it) would answer otherwise.
DIALECT = [
    ("word characters are ASCII", r"\w", "é", False),
    ("word boundary is ASCII", r"\bé", " é", False),
    ("space has BOM and NBSP", r"^\s\s$", "\ufeff\u00a0", True),
    ("space has no information separators", r"\s", "\x1c", False),
    ("dot excludes CR", "a.b", "a\rb", False),
    ("dot excludes line separator", "a.b", "a\u2028b", False),
    ("dot takes NEL", "a.b", "a\u0085b", True),
    ("multiline knows CR", "(?m)^b", "a\rb", True),
    ("dollar means the very end", "a$", "a\n", False),
    ("ignore case has no Turkish or Kelvin", "(?i)k", "\u212a", False),
    ("ignore case has no long s", "(?i)s", "ſ", False),
    ("an empty class matches nothing", "[]", "]", False),
    ("its complement matches everything", "^[^]$", "\n", True),
    ("a lone bracket is literal", "]", "]", True),
    ("a lone brace is literal", "a{,3}", "a{,3}", True),
    ("an unknown escape is the letter", r"\a\y", "ay", True),
    ("octal escapes", r"\101", "A", True),
    ("the anchors of others are letters", r"^\Ab\z$", "Abz", True),
    ("named groups", r"(?<year>\d{4})-\k<year>", "2020-2020", True),
    ("a reference to a group that took no part is empty", r"^(?:(a)|b)\1c$", "bc", True),
    ("a reference before its group", r"^\1(a)$", "a", True),
    ("captures are reset in each round", r"^(?:(a)|b)*\1$", "ab", True),
    ("inline flags of a group", "a(?i:b)c", "aBc", True),
    ("the inline flags end with the group", "a(?i:b)c", "aBC", False),
    ("without the u flag p is a letter", r"^\p{L}$", "p{L}", True),
    ("without the u flag a dot is half a pair", "^.$", "😀", False),
    ("look-ahead with a quantifier", "^(?=a)*b", "b", True),
    ("repeated letters of the prefix count once", "(?iim)^B$", "a\nb", True),
    ("the slash is no delimiter", "a/b", "a/b", True),
    ("NUL in the subject", "b", "a\0b", True),
]


@pytest.mark.parametrize(("pattern", "text", "matches"), [row[1:] for row in RX_ROWS], ids=[row[0] for row in RX_ROWS])
def test_table(pattern: str, text: str, matches: bool) -> None:
    assert (compile_regex(pattern).search(text) is not None) is matches


@pytest.mark.parametrize(("pattern", "text", "matches"), [row[1:] for row in DIALECT], ids=[row[0] for row in DIALECT])
def test_dialect(pattern: str, text: str, matches: bool) -> None:
    assert (compile_regex(pattern).search(text) is not None) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("[bad", id="RX-7"),
        pytest.param("x(?i)y", id="RX-8"),
        "(",
        "(?x)a",
        "a**",
        "[z-a]",
        "\\",
        "a{2,1}",
        "(?<n>a)(?<n>b)",
        "(?i",
        "(?:" * 6000 + ")" * 6000,
    ],
    ids=lambda pattern: pattern[:12],
)
def test_invalid_patterns_report_the_engine_text(pattern: str) -> None:
    with pytest.raises(InvalidRegex) as caught:
        compile_regex(pattern)
    assert str(caught.value).startswith(f"Invalid regex pattern: {pattern}. Error: ")
    assert caught.value.pattern == pattern
    assert caught.value.message
    assert "\n" not in caught.value.message
    assert not caught.value.message.startswith("SyntaxError")


@pytest.mark.parametrize("pattern", ["", "(?i)", "(?ims)"])
def test_a_pattern_needs_more_than_flags(pattern: str) -> None:
    with pytest.raises(InvalidRegex):
        compile_regex(pattern)


def test_offsets_count_utf16_code_units() -> None:
    found = compile_regex("(é)(x)?(.)").search("😀aé😀")
    assert found == RegexMatch(index=3, length=2, text="é\ufffd", groups=("é", None, "\ufffd"))
    assert compile_regex("b+").search("abbc") == RegexMatch(1, 2, "bb", ())
    assert compile_regex("x*").search("abc") == RegexMatch(0, 0, "", ())


def test_lone_surrogates_count_as_replacement_characters() -> None:
    assert compile_regex("^\ufffd$").search("\ud800") is not None
    assert compile_regex("^a\ud800$").search("a\udfff") is not None


def test_catastrophic_pattern_ends_at_its_limit_of_elapsed_time() -> None:
    pattern, limit = compile_regex("^(a+)+$"), 0.6
    began = time.monotonic()
    with pytest.raises(RegexTimeout, match=r"^Regex timed out after 0\.6s: /\^\(a\+\)\+\$/$"):
        pattern.search("a" * 40 + "b", time_limit=limit)
    assert time.monotonic() - began >= limit


def test_default_limit() -> None:
    """RX-9."""
    began = time.monotonic()
    with pytest.raises(RegexTimeout) as caught:
        compile_regex("^(a+)+$").search("a" * 40 + "b")
    assert str(caught.value) == "Regex timed out after 5s: /^(a+)+$/"
    assert time.monotonic() - began >= 5


def test_busy_threads_do_not_shorten_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine counts the processor time of all threads; a match that needs longer must still end well."""
    monkeypatch.setattr(regex_module, "QUICK_LIMIT", 0.001)
    slow, subject, found = compile_regex("^(a+)+$"), "a" * 19 + "b", []
    threads = [threading.Thread(target=lambda: found.append(slow.search(subject, time_limit=30))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [None, None, None]


def test_a_finished_slow_match_has_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = "é" + "a" * 22 + "b" + "😀c"
    pattern = compile_regex(r"(?:(a+)+$|(😀)(c))")
    quick = pattern.search(subject, time_limit=60)
    monkeypatch.setattr(regex_module, "QUICK_LIMIT", 0.001)
    assert pattern.search(subject, time_limit=60) == quick
    assert quick is not None
    assert quick.groups == (None, "😀", "c")


def test_exhausted_memory_is_an_error_and_the_next_match_works() -> None:
    greedy = compile_regex("(?:(a)|(b))*$")
    with pytest.raises(RegexError, match="memory"):
        greedy.search("ab" * 4_000_000, time_limit=60)
    assert greedy.search("ab") is not None


def test_a_helper_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = compile_regex("^(a+)+$")
    for executable in ("/nonexistent/python", "/bin/false"):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(RegexError, match="helper"):
            slow.search("a" * 40 + "b", time_limit=0.3)


def test_a_slow_match_in_a_thread_does_not_stop_the_event_loop() -> None:
    async def ticks_during_a_slow_match() -> int:
        slow = compile_regex("^(a+)+$")
        match = asyncio.create_task(asyncio.to_thread(_ignore_timeout, slow))
        ticks = 0
        while not match.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await match
        return ticks

    assert asyncio.run(ticks_during_a_slow_match()) >= 10


def _ignore_timeout(slow: regex_module.Regex) -> None:
    with pytest.raises(RegexTimeout):
        slow.search("a" * 40 + "b", time_limit=0.5)


def test_threads_share_a_pattern() -> None:
    pattern, results = compile_regex(r"(\d+)-(\w+)"), []

    def work(number: int) -> None:
        for repeat in range(50):
            found = pattern.search(f"é {number}-{'x' * repeat}y")
            results.append(found is not None and found.groups == (str(number), "x" * repeat + "y"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 400


REGEX_TEXT = st.text(st.sampled_from("ab()[]{}|*+?.\\^$-,1:=!<>kismduw\n😀é") | st.characters(), max_size=12)


@settings(max_examples=300, deadline=None)
@given(pattern=REGEX_TEXT, text=st.text(st.sampled_from("ab1 \n") | st.characters(), max_size=12))
def test_only_documented_errors(pattern: str, text: str) -> None:
    try:
        found = compile_regex(pattern).search(text)
    except (InvalidRegex, RegexError, RegexTimeout):
        return
    units = text.encode("utf-16-le", "replace")
    assert found is None or 0 <= found.index <= found.index + found.length <= len(units) // 2


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=30), start=st.integers(0, 30), length=st.integers(1, 5))
def test_escaped_text_is_found_where_it_stands(text: str, start: int, length: int) -> None:
    wanted = text[start : start + length]
    if not wanted:
        return
    escaped = "".join(f"\\u{ord(unit):04x}" for unit in _units(wanted))
    found = compile_regex(escaped).search(text)
    assert found is not None
    assert _units(text)[found.index : found.index + found.length] == _units(wanted)


def _units(text: str) -> str:
    data = text.encode("utf-16-le")
    return "".join(chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2))


@pytest.mark.parametrize(
    ("pattern", "subject", "plain", "unicode"),
    [("^.$", "\U0001f600", False, True), (r"^\p{Lu}$", "É", False, True), (r"^\p{Lu}$", "p{Lu}", True, False)],
)
def test_the_flag_u(pattern: str, subject: str, plain: bool, unicode: bool) -> None:
    assert (compile_regex(pattern).search(subject) is not None) is plain
    assert (compile_regex(pattern, unicode=True).search(subject) is not None) is unicode


def test_the_flag_u_goes_with_the_prefix_and_is_stricter() -> None:
    assert compile_regex("(?i)É", unicode=True).search("é") is not None
    assert compile_regex(r"\_").search("_") is not None
    with pytest.raises(InvalidRegex):
        compile_regex(r"\_", unicode=True)
