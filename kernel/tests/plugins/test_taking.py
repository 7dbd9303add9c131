"""What is taken from a module, an attribute or an object, and hosts made from objects."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
from plugin_sites import Site, host, names, problem, provider, write_files

from vally import ExecutorSpec, GraderSpec, PluginError, PluginHost, hookimpl
from vally.testing import plugin_host

HEAD = "from vally import ExecutorSpec, GraderSpec, hookimpl\n"


def spec(name: str) -> GraderSpec:
    return GraderSpec(name=name, summary="fine", factory=dict)


def record(name: str) -> str:
    return f"GraderSpec(name={name!r}, summary='fine', factory=dict)"


MODULES = {
    "hooks-before-records": (provider("hook") + f"PLAIN = {record('plain')}\n", ["hook"]),
    "records-of-a-module": (
        HEAD + f"B = {record('b')}\nA = {record('a')}\n_HIDDEN = {record('hidden')}\nSAME = A\n",
        ["a", "b"],
    ),
    "records-of-the-kind-only": (
        HEAD + f"A = {record('a')}\nE = ExecutorSpec(name='e', summary='fine', factory=dict)\n",
        ["a"],
    ),
    "hook-by-another-name": (
        HEAD + f"@hookimpl(specname='vally_graders')\ndef mine():\n    return [{record('a')}]\n",
        ["a"],
    ),
    "optional-hook-of-a-later-kernel": (
        provider("a") + "@hookimpl(optionalhook=True)\ndef vally_dreams():\n    return []\n",
        ["a"],
    ),
}
ATTRIBUTES = {
    "a-record": (f"thing = {record('a')}", ["a"]),
    "a-function": (f"def thing():\n    return {record('a')}", ["a"]),
    "a-generator": (f"def thing():\n    yield {record('a')}\n    yield {record('b')}", ["a", "b"]),
    "a-class-with-hooks": (
        f"class thing:\n    @hookimpl\n    def vally_graders(self):\n        return [{record('a')}]\nthing = thing()",
        ["a"],
    ),
    "a-class-that-is-called": (
        f"class thing:\n    @hookimpl\n    def vally_graders(self):\n        return [{record('a')}]",
        ["a"],
    ),
    "a-list": (f"thing = [{record('a')}, {record('b')}]", ["a", "b"]),
    "mixed-kinds": (
        f"def thing():\n    yield {record('a')}\n    yield ExecutorSpec(name='e', summary='fine', factory=dict)",
        ["a"],
    ),
    "a-nested-attribute": (f"class thing:\n    inner = {record('a')}", ["a"]),
}
NOTHING = {
    "a-number": ("thing = 3", "provides no grader"),
    "needs-arguments": ("def thing(registry):\n    registry.add(1)", "provides no grader"),
    "returns-none": ("def thing():\n    return None", "provides no grader"),
    "another-kind": (
        "thing = ExecutorSpec(name='e', summary='fine', factory=dict)",
        "provides no grader, only executor",
    ),
    "wrong-things": ("def thing():\n    return ['a']", "str is not a GraderSpec"),
    "raises": ("def thing():\n    raise ValueError('not today')", "ValueError: not today"),
    "missing": ("other = 1", "AttributeError: module 'tools' has no attribute 'thing'"),
}


@pytest.mark.parametrize("case", MODULES)
def test_modules(site: Site, work: Path, case: str) -> None:
    text, expected = MODULES[case]
    write_files(work, {"x.py": text})
    assert names(host(("grader", "./x.py"), cwd=work)) == expected


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attributes(site: Site, work: Path, case: str) -> None:
    text, expected = ATTRIBUTES[case]
    write_files(site.path, {"tools.py": HEAD + text})
    attribute = "thing.inner" if case == "a-nested-attribute" else "thing"
    assert names(host(("grader", f"tools:{attribute}"), cwd=work)) == expected


@pytest.mark.parametrize("case", NOTHING)
def test_attributes_without_records(site: Site, work: Path, case: str) -> None:
    text, expected = NOTHING[case]
    write_files(site.path, {"tools.py": HEAD + text})
    assert problem(host(("grader", "tools:thing"), cwd=work)) == f"plugin 'tools:thing': {expected}"


def test_only_the_hook_of_the_kind_is_called(site: Site) -> None:
    text = provider("a") + "@hookimpl\ndef vally_executors():\n    raise RuntimeError('must not be called')\n"
    groups = {"vally.graders": {"x": "both"}, "vally.executors": {"x": "both"}}
    site.distribution("acme", "1.0", groups=groups, files={"both.py": text})
    plugins = host()
    assert names(plugins) == ["a"]
    assert plugins.warnings() == []
    assert names(plugins, "executor") == []
    assert plugins.warnings() == ["plugin 'x' of acme 1.0 cannot be used: RuntimeError: must not be called"]


def test_a_host_of_records() -> None:
    plugins = plugin_host(spec("b"), spec("a"), ExecutorSpec(name="e", summary="fine", factory=dict))
    assert (names(plugins), names(plugins, "executor"), names(plugins, "judge")) == (["a", "b"], ["e"], [])


def test_a_host_of_modules_and_objects() -> None:
    module = types.ModuleType("made_up")
    module.RECORD = spec("of-module")  # type: ignore[attr-defined]

    class Hooks:
        @hookimpl
        def vally_graders(self) -> list[GraderSpec]:
            return [spec("of-object")]

    plugins = plugin_host(module, Hooks())
    assert names(plugins) == ["of-module", "of-object"]
    assert plugins.origin(plugins.require("grader", "of-module")) == "object"


def test_a_host_with_specifiers(site: Site, work: Path) -> None:
    write_files(work, {"x.py": provider("from-file")})
    assert names(plugin_host(spec("a"), specifiers=[("grader", str(work / "x.py"))])) == ["a", "from-file"]


def test_two_records_of_one_name() -> None:
    with pytest.raises(PluginError, match="grader 'a' is provided by"):
        plugin_host(spec("a"), spec("a")).records("grader")


def test_an_object_that_is_no_plugin() -> None:
    with pytest.raises(PluginError, match="object 'dict' has neither records nor hooks"):
        plugin_host(dict).records("grader")


def test_a_bad_record_given_directly() -> None:
    with pytest.raises(PluginError, match=r"plugin 'Bad': name 'Bad' must match"):
        plugin_host(spec("Bad")).records("grader")


def test_hosts_do_not_share_anything(site: Site) -> None:
    site.grader("acme", "1.0", "x", module="x_mod")
    first, second = host(), host()
    assert first.records("grader") == second.records("grader")
    assert names(PluginHost.from_objects()) == []


def test_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match="unknown kind of plugin 'graders'"):
        plugin_host().records("graders")


@pytest.mark.parametrize("name", ["eval", "grade", "plugins", "help"])
def test_command_names_of_the_kernel(site: Site, work: Path, name: str) -> None:
    text = f"from vally import CommandSpec\nX = CommandSpec(name={name!r}, summary='fine', factory=dict)\n"
    write_files(work, {"x.py": text})
    expected = f"plugin './x.py': the command name '{name}' belongs to the kernel"
    assert problem(host(("command", "./x.py"), cwd=work), "command") == expected
