"""The kernel names no built-in: no keyword, executor, backend, judge, reporter or report file, the defaults aside."""

from __future__ import annotations

import importlib
import re

import pytest
from checkout import KERNEL, PLUGINS, Member
from imports import string_literals

# The defaults that the eval format fixes: executor, backend and judge.
DEFAULTS = {"copilot-sdk", "local", "copilot"}

# Words of the formats and of the command line that some plugin happens to have as its name too.
VOCABULARY = {
    "anthropic": "a wire family of the provider shape",
    "compare": "a method of graders",
    "command": "a kind of plugin, and a key of MCP servers",
    "init": "a subcommand of git",
    "experiment": "a kind of run, and a key of its records",
    "schema": "how a judge may be asked to answer",
    "completed": "an end reason, and the status of a run",
    "jsonl": "a value of --output, and a suffix of data files",
    "lint": "a function of the library, which calls the command of that name",
    "openai": "a wire family of the provider shape",
    "oracle": "a fact about graders",
    "program": "the description of the command of an MCP server",
    "prompt": "a key of a stimulus",
    "runs": "a key of the defaults of a spec, and an option",
}
REPORT_FILES = {"eval-results.md", "eval-results.html", "eval-results.junit.xml", "otel-spans.jsonl"}


def names_of(plugin: Member) -> set[str]:
    module = importlib.import_module(f"{plugin.package}.plugin")
    return {record.name for record in getattr(module, f"vally_{plugin.kind}s")()}


NAMES = {plugin.name: names_of(plugin) for plugin in PLUGINS}
LITERALS = {text for path in KERNEL.modules() for text, _ in string_literals(path)}
FORBIDDEN = set().union(REPORT_FILES, *NAMES.values()) - DEFAULTS


def test_every_built_in_has_a_name() -> None:
    assert all(NAMES.values())


@pytest.mark.parametrize("name", sorted(FORBIDDEN - set(VOCABULARY)))
def test_no_literal_of_the_kernel_is_a_built_in_name(name: str) -> None:
    assert not [where for path in KERNEL.modules() for text, where in string_literals(path) if text == name]


@pytest.mark.parametrize("name", sorted(name for name in FORBIDDEN if re.search("[-.]", name)))
def test_not_even_a_comment_of_the_kernel_names_a_built_in(name: str) -> None:
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)")
    assert not [str(path) for path in KERNEL.modules() if word.search(path.read_text(encoding="utf-8"))]


def test_the_kernel_uses_every_word_of_the_vocabulary() -> None:
    assert set(VOCABULARY) <= LITERALS
