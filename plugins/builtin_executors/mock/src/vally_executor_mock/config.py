"""Config of the executor `mock`."""

from __future__ import annotations

from vally import CamelConfig


class MockConfig(CamelConfig):
    """`fixture_dir` is relative to the spec and searched first; `strict` makes a missing fixture an error."""

    fixture_dir: str | None = None
    strict: bool = False
