"""Factories and config models: imported at first use, and what happens when they cannot be."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Literal

import pytest
from plugin_sites import Site, host, write_files
from pydantic import BaseModel, ConfigDict, Field, field_validator

from vally import CamelConfig, CommandSpec, Config, ConfigInvalid, GraderSpec, Pattern, PluginError, grader
from vally.testing import plugin_host


def record(**fields: object) -> GraderSpec:
    return GraderSpec(**{"name": "g", "summary": "fine", "factory": dict, **fields})  # type: ignore[arg-type]


def installed(site: Site, factory: str = "acme_impl:Grader", config: str | None = None) -> None:
    text = (
        "from vally import GraderSpec, hookimpl\n@hookimpl\ndef vally_graders():\n"
        f"    yield GraderSpec(name='g', summary='fine', factory={factory!r}, config={config!r})\n"
    )
    site.distribution("acme", "1.0", graders={"acme": "acme_plugin"}, files={"acme_plugin.py": text})


def test_implementations_are_imported_when_used(site: Site) -> None:
    installed(site, config="acme_config:Settings")
    write_files(site.path, {"acme_impl.py": "class Grader:\n    def grade(self, input): pass\n"})
    write_files(site.path, {"acme_config.py": "from vally import Config\nclass Settings(Config):\n    max: int\n"})
    plugins = host()
    found = plugins.require("grader", "g")
    plugins.listing()
    assert not {"acme_impl", "acme_config"} & set(sys.modules)
    assert plugins.parse_config(found, {"max": 3}).max == 3
    assert "acme_impl" not in sys.modules
    assert type(plugins.create(found)).__name__ == "Grader"


def test_a_grader_that_says_it_compares_must_be_able_to() -> None:
    plugins = plugin_host(record(factory=Blank, comparable=True))
    with pytest.raises(PluginError, match="Blank: what it makes has no method 'compare'"):
        plugins.create(plugins.require("grader", "g"))


class Blank:
    def grade(self, input: object) -> None: ...


def test_each_call_makes_a_new_object() -> None:
    plugins = plugin_host(record(factory=Blank))
    found = plugins.require("grader", "g")
    assert plugins.create(found) is not plugins.create(found)


BAD_FACTORIES = {
    "module": ("no_such:Grader", "", "no_such:Grader: factory cannot be imported: No module named 'no_such'"),
    "attribute": (
        "acme_impl:Nope",
        "",
        "acme_impl:Nope: factory cannot be imported: AttributeError: module 'acme_impl' has no attribute 'Nope'",
    ),
    "import-exits": ("acme_impl:G", "raise SystemExit(2)", "acme_impl:G: factory cannot be imported: SystemExit: 2"),
    "raises": ("acme_impl:G", "def G():\n    raise OSError('no socket')", "acme_impl:G: OSError: no socket"),
    "needs-arguments": (
        "acme_impl:G",
        "def G(x): pass",
        "acme_impl:G: TypeError: G() missing 1 required positional argument: 'x'",
    ),
    "not-callable": ("acme_impl:G", "G = 3", "acme_impl:G: is not callable"),
    "no-grader": (
        "acme_impl:G",
        "class G:\n    grade = 5\n    def compare(self, input): pass",
        "acme_impl:G: what it makes has no method 'grade'",
    ),
}


@pytest.mark.parametrize("case", BAD_FACTORIES)
def test_a_factory_that_does_not_work(site: Site, case: str) -> None:
    factory, text, reason = BAD_FACTORIES[case]
    installed(site, factory)
    write_files(site.path, {"acme_impl.py": text})
    plugins = host()
    found = plugins.require("grader", "g")
    with pytest.raises(PluginError) as caught:
        plugins.create(found)
    assert caught.value.message == f"grader 'g' of acme 1.0: {reason}"
    assert caught.value.code == "plugin-load-failed"


BAD_MODELS = {
    "missing": (
        "acme_config:Nope",
        "",
        "acme_config:Nope: config cannot be imported: AttributeError: module 'acme_config' has no attribute 'Nope'",
    ),
    "no-model": ("acme_config:M", "M = dict", "acme_config:M: is not a pydantic model"),
    "lenient-model": (
        "acme_config:M",
        "from pydantic import BaseModel\nclass M(BaseModel): pass",
        "acme_config:M: must subclass vally.Config or set extra='forbid', strict=True, frozen=True",
    ),
    "half": (
        "acme_config:M",
        "from pydantic import BaseModel\nclass M(BaseModel, extra='forbid', strict=True): pass",
        "acme_config:M: must subclass vally.Config or set frozen=True",
    ),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_a_config_model_that_does_not_work(site: Site, case: str) -> None:
    config, text, reason = BAD_MODELS[case]
    installed(site, config=config)
    write_files(site.path, {"acme_config.py": text})
    plugins = host()
    with pytest.raises(PluginError) as caught:
        plugins.parse_config(plugins.require("grader", "g"), {})
    assert caught.value.message == f"grader 'g' of acme 1.0: {reason}"
    assert caught.value.code == "plugin-load-failed"


def test_a_model_with_the_same_properties_is_accepted() -> None:
    class Own(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
        max: int

    plugins = plugin_host(record(config=Own))
    assert plugins.parse_config(plugins.require("grader", "g"), {"max": 2}) == Own(max=2)


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class First(Config):
    type: Literal["first"]
    count: int = 0


class Second(Config):
    type: Literal["second"]
    path: str


class Settings(Config):
    name: str = "n"
    count: int = Field(default=0, ge=0, le=10)
    ratio: float = Field(default=0.5, gt=0, lt=1)
    flag: bool = False
    mode: Literal["fast", "slow"] = "fast"
    level: Level = Level.LOW
    items: tuple[str, ...] = ()
    few: list[int] = Field(default=[], max_length=2)
    some: list[int] = Field(default=[1], min_length=1)
    slug: str = Field(default="a", pattern="^[a-z]*$", min_length=1)
    target: Path | None = None
    text_or_list: str | list[str] = ""
    limits: dict[str, int] = Field(default={})
    inner: First | None = None
    check: First | Second | None = None
    chosen: First | Second | None = Field(default=None, discriminator="type")
    pattern: Pattern | None = None

    @field_validator("name")
    @classmethod
    def not_reserved(cls, value: str) -> str:
        if value == "reserved":
            raise ValueError("the name 'reserved' is taken by the program itself")
        return value


PROBLEMS: dict[str, tuple[dict[str, object], list[str]]] = {
    "unknown": ({"colour": 1, "size": 2}, ["unknown key 'colour'", "unknown key 'size'"]),
    "string": ({"name": 42}, ["'name' must be a string"]),
    "null": ({"name": None}, ["'name' must be a string"]),
    "integer": ({"count": "3"}, ["'count' must be an integer"]),
    "fraction": ({"count": 1.5}, ["'count' must be an integer"]),
    "no-bool-as-integer": ({"count": True}, ["'count' must be an integer"]),
    "at-least": ({"count": -1}, ["'count' must be at least 0"]),
    "at-most": ({"count": 11}, ["'count' must be at most 10"]),
    "greater": ({"ratio": 0}, ["'ratio' must be greater than 0"]),
    "less": ({"ratio": 1.0}, ["'ratio' must be less than 1"]),
    "number": ({"ratio": "x"}, ["'ratio' must be a number"]),
    "boolean": ({"flag": "yes"}, ["'flag' must be true or false"]),
    "one-of": ({"mode": "medium"}, ["'mode' must be 'fast' or 'slow'"]),
    "enum": ({"level": "mid"}, ["'level' must be 'low' or 'high'"]),
    "list": ({"items": "a"}, ["'items' must be a list"]),
    "item": ({"items": ["a", 2]}, ["'items[1]' must be a string"]),
    "too-many": ({"few": [1, 2, 3]}, ["'few' must be of at most 2 items"]),
    "too-few": ({"some": []}, ["'some' must be non-empty"]),
    "empty-text": ({"slug": ""}, ["'slug' must be non-empty"]),
    "pattern": ({"slug": "A"}, ["'slug' must be text that matches ^[a-z]*$"]),
    "either": ({"text_or_list": 5}, ["'text_or_list' must be a string or a list"]),
    "item-of-either": ({"text_or_list": ["a", 5]}, ["'text_or_list[1]' must be a string"]),
    "mapping": ({"limits": []}, ["'limits' must be a mapping"]),
    "value": ({"limits": {"a": "b"}}, ["'limits.a' must be an integer"]),
    "inner": ({"inner": {"type": "first", "extra": 1}}, ["unknown key 'inner.extra'"]),
    "inner-required": ({"inner": {}}, ["'inner.type' is required"]),
    "inner-type": ({"inner": "x"}, ["'inner' must be a mapping"]),
    "tagged": ({"chosen": {"type": "third"}}, ["'chosen' must be a mapping whose 'type' is 'first', 'second'"]),
    "tagged-inner": ({"chosen": {"type": "second"}}, ["'chosen.path' is required"]),
    "untagged": ({"chosen": {}}, ["'chosen' must be a mapping whose 'type' is given"]),
    "own-words": ({"name": "reserved"}, ["the name 'reserved' is taken by the program itself"]),
    "regex": (
        {"pattern": "("},
        ["Invalid regex pattern: (. Error: Invalid regular expression: /(/u: Unterminated group"],
    ),
    "several": ({"count": "x", "flag": 1}, ["'count' must be an integer", "'flag' must be true or false"]),
}


def parse(values: dict[str, object], **options: bool) -> Settings:
    plugins = plugin_host(record(config=Settings))
    parsed = plugins.parse_config(plugins.require("grader", "g"), values, **options)
    assert isinstance(parsed, Settings)
    return parsed


@pytest.mark.parametrize("case", [case for case in PROBLEMS if case != "regex"])
def test_problems_are_worded_by_the_keys_that_were_written(case: str) -> None:
    values, expected = PROBLEMS[case]
    with pytest.raises(ConfigInvalid) as caught:
        parse(values)
    assert list(caught.value.problems) == expected
    assert caught.value.message == f"Invalid config for g: {expected[0]}"


def test_an_invalid_pattern_is_a_problem_unless_grading() -> None:
    with pytest.raises(ConfigInvalid, match=r"Invalid config for g: Invalid regex pattern: \(\. Error: "):
        parse({"pattern": "("})
    assert parse({"pattern": "("}, lenient=True).pattern == "("


def test_texts_and_lists_of_yaml_fit_strict_models() -> None:
    parsed = parse({"items": ["a", "b"], "target": "x/y", "level": "high", "ratio": 0.25, "check": {"type": "first"}})
    assert (parsed.items, parsed.target, parsed.level) == (("a", "b"), Path("x/y"), Level.HIGH)
    assert isinstance(parsed.check, First)


def test_configs_are_frozen_and_absent_means_empty() -> None:
    plugins = plugin_host(record(config=Settings))
    parsed = plugins.parse_config(plugins.require("grader", "g"), None)
    assert parsed == Settings()
    with pytest.raises(ValueError, match="frozen"):
        parsed.name = "other"


def test_other_kinds_write_camel_case_only() -> None:
    class Camel(CamelConfig):
        max_items: int = 1

    plugins = plugin_host(record(config=Camel))
    found = plugins.require("grader", "g")
    assert plugins.parse_config(found, {"maxItems": 3}) == Camel(max_items=3)
    with pytest.raises(ConfigInvalid) as caught:
        plugins.parse_config(found, {"max_items": 3})
    assert caught.value.problems == ("unknown key 'max_items'",)


def test_a_record_without_model_takes_no_config() -> None:
    plugins = plugin_host(record())
    found = plugins.require("grader", "g")
    assert plugins.parse_config(found, {}) == {}
    with pytest.raises(ConfigInvalid, match="Invalid config for g: unknown key 'max'"):
        plugins.parse_config(found, {"max": 1})


def test_the_decorator() -> None:
    @grader("word", cost="free", turn=False)
    def word(value: str) -> str:
        """One word.

        More about it.
        """
        return value.upper()

    @grader("other", summary="given", config=Settings)
    class Other:
        """Not used."""

        def grade(self, input: object) -> object:
            return input

    assert (word.name, word.summary, word.cost, word.supports_turn) == ("word", "One word", "free", False)
    assert word("a") == "A"
    assert (other_config := Other.config) is Settings, other_config
    assert Other.summary == "given"
    plugins = plugin_host(word, Other)
    assert plugins.create(word).grade("b") == "B"
    assert plugins.create(Other).grade(3) == 3
    assert type(Other()).__name__ == "Other"


def test_memo_keeps_what_was_made_first() -> None:
    plugins = plugin_host()
    made: list[int] = []
    values = [plugins.memo("key", lambda: made.append(1) or len(made)) for _ in range(3)]
    assert (values, made) == ([1, 1, 1], [1])


def command(**fields: object) -> CommandSpec:
    return CommandSpec(**{"name": "c", "summary": "fine", "factory": dict, **fields})  # type: ignore[arg-type]


def test_what_programs_call_in_place_of_a_command() -> None:
    plugins = plugin_host(command(function="json:loads"))
    assert plugins.function(plugins.require("command", "c"))("[1]") == [1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (None, "command 'c'.*: cannot be called by programs"),
        ("json:nothing", "command 'c'.*json:nothing: function cannot be imported"),
        ("math:pi", "command 'c'.*math:pi: cannot be called by programs"),
    ],
)
def test_a_command_that_programs_cannot_call(function: str | None, problem: str) -> None:
    made = command(function=function)
    with pytest.raises(PluginError, match=problem):
        plugin_host(made).function(made)
