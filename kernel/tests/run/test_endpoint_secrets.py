"""Secrets of an endpoint in what it answered."""

from __future__ import annotations

import itertools

import pytest

from vally import EndpointError, without_secrets

SECRETS = ("key-1", "key-12345", "12345")


@pytest.mark.parametrize("secrets", list(itertools.permutations(SECRETS)))
def test_a_secret_that_begins_another_leaves_nothing_of_it(secrets: tuple[str, ...]) -> None:
    assert without_secrets("a key-12345 b key-1 c", secrets) == "a <redacted> b <redacted> c"
    error = EndpointError.of_status(400, '{"error": "no key-12345"}', {}, secrets)
    assert error.message == "HTTP 400: no <redacted>"
