"""Config of the keywords that look for literal text."""

from __future__ import annotations

from pydantic import model_validator

from vally import Config, NegatedFlag, NonEmpty


class ContainsConfig(Config):
    """`substring`, or its alias `value`; empty means absent, because a literal cannot be empty."""

    substring: NonEmpty = ""
    value: NonEmpty = ""
    case_sensitive: bool = False
    negate: bool = False

    @model_validator(mode="after")
    def _check_one_text(self) -> ContainsConfig:
        if self.substring and self.value:
            raise ValueError("provide exactly one of 'substring' or 'value'")
        if not self.text:
            raise ValueError("'substring' is required")
        return self

    @property
    def text(self) -> str:
        """The literal text as written."""
        return self.substring or self.value


class NotContainsConfig(ContainsConfig):
    """The same for a negated keyword."""

    negate: NegatedFlag = True
