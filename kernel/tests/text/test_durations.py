"""Durations: the table, refusals and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vally.text.durations import MAX_MS, InvalidDuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        pytest.param("2m", 120_000, id="DU-1-m"),
        pytest.param("90s", 90_000, id="DU-1-s"),
        pytest.param("500ms", 500, id="DU-1-ms"),
        pytest.param("1h", 3_600_000, id="DU-1-h"),
        pytest.param("2m40s", 160_000, id="DU-2"),
        pytest.param("17m30s", 1_050_000, id="DU-3"),
        pytest.param("1.5m", 90_000, id="DU-4"),
        pytest.param("1h1.5s", 3_601_500, id="DU-5"),
        pytest.param("0.4ms", 0, id="DU-7"),
        ("0.5ms", 1),
        ("0s", 0),
        ("1m1ms", 60_001),
        ("1h2m3s4.5ms", 3_723_005),
        ("168h", MAX_MS),
        ("007s", 7_000),
    ],
)
def test_valid(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(text, id=f"DU-6-{text}") for text in ("30s2m", "2m2m", "1.5m30s", "2 m", "-1s", "5M", "5", "")),
        "168h1ms",
        "1s\n",
        " 1s",
        "1d",
        "1.s",
        ".5s",
        "1.5.5s",
        "+1s",
        "1e3s",
        "١s",
        "1m 2s",
        "9" * 5000 + "s",
        "s",
    ],
)
def test_invalid(text: str) -> None:
    with pytest.raises(InvalidDuration, match=r"duration|168h"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (999, "999ms"),
        (1000, "1s"),
        (1500, "1.5s"),
        (60_000, "1m"),
        (160_000, "2m40s"),
        (3_600_000, "1h"),
        (3_601_050, "1h1.05s"),
        (60_001, "1m0.001s"),
        (MAX_MS, "168h"),
    ],
)
def test_format(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


@given(st.integers(0, MAX_MS))
def test_round_trip(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds
