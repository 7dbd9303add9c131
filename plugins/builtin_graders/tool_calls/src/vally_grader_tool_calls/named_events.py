"""What `skill-invocation` and `system-event` share: names that events of one type must, or must not, have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from vally import Config, GraderInput, GraderResult, Trajectory, describe_grader_value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _each_once(names: list[str], info: ValidationInfo) -> list[str]:
    if not all(names):
        raise ValueError(f"'{info.field_name}' must not hold an empty name")
    return list(dict.fromkeys(names))


Names = Annotated[
    list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str]), AfterValidator(_each_once)
]


class NamesConfig(Config):
    """Exact names; at least one of the lists has one, and none is in both."""

    required: Names = Field(default_factory=list)
    disallowed: Names = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_lists(self) -> NamesConfig:
        if not self.required and not self.disallowed:
            raise ValueError("provide at least one of 'required' or 'disallowed'")
        both = next((name for name in self.required if name in self.disallowed), None)
        if both is not None:
            raise ValueError(f"'{both}' is both required and disallowed")
        return self


class NamedEvents:
    """Counts the events of one type by name. Subclasses say which, and how evidence calls them."""

    keyword: ClassVar[str]
    event_type: ClassVar[str]
    name_key: ClassVar[str]
    noun: ClassVar[str]
    happened: ClassVar[str]
    any_name: ClassVar[str | None] = None

    def grade(self, input: GraderInput[Any]) -> GraderResult:
        config: NamesConfig = input.config
        counts = Counter(self._names(input.trajectory))
        missing = [name for name in config.required if not counts[name]]
        forbidden = self._forbidden(config, counts)
        failed = bool(missing or forbidden)
        return GraderResult.verdict(
            not failed,
            "; ".join(self._failures(missing, forbidden) if failed else self._successes(config)),
            name=self.keyword,
            metadata={
                "required": list(config.required),
                "disallowed": list(config.disallowed),
                self.happened: list(counts),
                "missing": missing,
                "forbidden": forbidden,
            },
            details=self._details(config, counts),
        )

    def default_name(self, config: NamesConfig) -> str:
        wanted = ", ".join(config.required)
        unwanted = f"not {', '.join(config.disallowed)}" if config.disallowed else ""
        return f"{self.keyword} {describe_grader_value('; '.join(part for part in (wanted, unwanted) if part))}"

    def asserts_absence(self, config: NamesConfig) -> bool:
        return bool(config.disallowed) and not config.required

    def _names(self, trajectory: Trajectory) -> Iterable[str]:
        names = (event.data.get(self.name_key) for event in trajectory.events if event.type == self.event_type)
        return (name for name in names if isinstance(name, str))

    def _forbidden(self, config: NamesConfig, counts: Counter[str]) -> list[str]:
        if self.any_name in config.disallowed:
            return list(counts)
        return [name for name in config.disallowed if counts[name]]

    def _successes(self, config: NamesConfig) -> list[str]:
        parts = []
        if config.required:
            parts.append(f"All required {self.noun}s {self.happened}: {', '.join(config.required)}")
        if config.disallowed:
            parts.append(f"No disallowed {self.noun}s {self.happened}")
        return parts

    def _failures(self, missing: list[str], forbidden: list[str]) -> list[str]:
        parts = []
        if missing:
            parts.append(f"Required {self.noun}s NOT {self.happened}: {', '.join(missing)}")
        if forbidden:
            parts.append(f"Disallowed {self.noun}s {self.happened}: {', '.join(forbidden)}")
        return parts

    def _details(self, config: NamesConfig, counts: Counter[str]) -> list[GraderResult]:
        wanted = [self._detail("required", name, counts[name]) for name in config.required]
        unwanted = [
            self._detail("disallowed", name, counts.total() if name == self.any_name else counts[name])
            for name in config.disallowed
        ]
        return wanted + unwanted

    def _detail(self, role: str, name: str, count: int) -> GraderResult:
        shown = f"{self.noun.capitalize()} '{name}'"
        evidence = f"{shown} {self.happened} {count} time(s)" if count else f"{shown} NOT {self.happened}"
        return GraderResult.verdict(bool(count) == (role == "required"), evidence, name=f"{role} {name}")
