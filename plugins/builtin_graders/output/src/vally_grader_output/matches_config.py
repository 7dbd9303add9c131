"""Config of the keywords that look for a regular expression."""

from __future__ import annotations

from vally import Config, NegatedFlag, Pattern


class MatchesConfig(Config):
    """One pattern."""

    pattern: Pattern
    negate: bool = False


class NotMatchesConfig(MatchesConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True
