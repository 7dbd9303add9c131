"""Configs of the file keywords."""

from __future__ import annotations

from vally import Config, NegatedFlag, NonEmpty, Pattern, WorkspaceGlob


class ExistsConfig(Config):
    """A path or glob."""

    path: WorkspaceGlob
    negate: bool = False


class NotExistsConfig(ExistsConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True


class ContainsConfig(ExistsConfig):
    """A path or glob, and a literal text."""

    value: NonEmpty


class NotContainsConfig(ContainsConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True


class MatchesConfig(ExistsConfig):
    """A path or glob, and a regular expression."""

    pattern: Pattern


class NotMatchesConfig(MatchesConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True
