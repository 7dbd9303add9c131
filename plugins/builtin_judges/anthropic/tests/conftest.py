"""What the tests of this judge start."""

from judge_fixtures import endpoint, server

__all__ = ["endpoint", "server"]
