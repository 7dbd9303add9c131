"""Values of options."""

from __future__ import annotations

import click
import pytest

from vally import SHARE


@pytest.mark.parametrize(("text", "value"), [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1e-3", 0.001)])
def test_a_share_is_a_number_from_0_to_1(text: str, value: float) -> None:
    assert SHARE.convert(text, None, None) == value


@pytest.mark.parametrize("text", ["nan", "-nan", "NaN", "inf", "-0.1", "1.1", "x", ""])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        SHARE.convert(text, None, None)
