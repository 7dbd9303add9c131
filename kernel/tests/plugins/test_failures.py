"""Plugins that break in every way: a warning when installed, an error when a user named them, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import COUNTS_IMPORTS, Site, host, names, problem, provider, write_files

from vally import PluginError

HEAD = "from vally import ExecutorSpec, GraderSpec, hookimpl\n"
HOOK = HEAD + "@hookimpl\ndef vally_graders():\n"
RECORD = "GraderSpec(name='x', summary='fine', factory=dict)"
BROKEN = {
    "import-error": ("import surely_not_installed", "No module named 'surely_not_installed'"),
    "missing-name": ("from vally import Surely", "cannot import name 'Surely' from 'vally' ({vally})"),
    "assertion-error": ("assert 1 == 2, 'one is not two'", "AssertionError: one is not two"),
    "assertion-without-text": ("assert False", "AssertionError"),
    "system-exit": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "syntax-error": ("def (:", "SyntaxError: invalid syntax ({module}, line 1)"),
    "generator-exit": ("raise GeneratorExit", "GeneratorExit"),
    "several-lines": ("raise ValueError('one\\n\\ttwo \\x1b[31mthree')", "ValueError: one two three"),
    "hook-raises": (HOOK + "    raise RuntimeError('no records today')", "RuntimeError: no records today"),
    "hook-exits": (HOOK + "    raise SystemExit('bye')\n    yield", "SystemExit: bye"),
    "hook-raises-late": (HOOK + f"    yield {RECORD}\n    raise KeyError('k')", "KeyError: 'k'"),
    "hook-returns-none": (HOOK + "    pass", "vally_graders returned None, not an iterable of GraderSpec"),
    "hook-returns-record": (
        HOOK + f"    return {RECORD}",
        "vally_graders returned GraderSpec, not an iterable of GraderSpec",
    ),
    "hook-is-async": (
        HOOK.replace("def vally", "async def vally") + f"    return [{RECORD}]",
        "vally_graders returned coroutine, not an iterable of GraderSpec",
    ),
    "wrong-type": (HOOK + "    return ['x']", "str is not a GraderSpec"),
    "wrong-kind": (
        HOOK + "    yield ExecutorSpec(name='x', summary='fine', factory=dict)",
        "ExecutorSpec is not a GraderSpec",
    ),
    "bad-name": (
        HOOK + "    yield GraderSpec(name='Bad Name', summary='fine', factory=dict)",
        "name 'Bad Name' must match ^[a-z0-9][a-z0-9-]{{0,59}}$",
    ),
    "bad-summary": (
        HOOK + "    yield GraderSpec(name='x', summary='fine.', factory=dict)",
        "summary of 'x' must have at most 100 characters and no final full stop",
    ),
    "bad-factory": (
        HOOK + "    yield GraderSpec(name='x', summary='fine', factory='module')",
        "factory of 'x' must be callable or 'package.module:attribute'",
    ),
    "name-twice": (HOOK + f"    yield {RECORD}\n    yield {RECORD}", "provides grader 'x' twice"),
    "unknown-field": (
        HOOK + "    yield GraderSpec(name='x', summary='fine', factory=dict, colour='red')",
        "TypeError: GraderSpec.__init__() got an unexpected keyword argument 'colour'",
    ),
    "unknown-hook": (
        HOOK.replace("vally_graders", "vally_grader") + f"    yield {RECORD}",
        "unknown hook 'vally_grader', did you mean 'vally_graders'?",
    ),
    "second-unknown-hook": (
        HOOK + f"    yield {RECORD}\n@hookimpl\ndef vally_everything():\n    return []",
        "unknown hook 'vally_everything'",
    ),
    "hook-with-argument": (
        HOOK.replace("()", "(config)") + f"    yield {RECORD}",
        "Argument(s) {{'config'}} are declared in the hookimpl but can not be found in the hookspec "
        "(vally_graders(config))",
    ),
    "no-hook": ("x = 1", "provides no grader"),
    "other-kind": (provider("e", kind="executor"), "provides no grader, only executor"),
    "unmarked-hook": (
        HEAD + f"def vally_graders():\n    return [{RECORD}]",
        "provides no grader; 'vally_graders' is not marked with @hookimpl",
    ),
    "api-2": (provider("x", api=2), "needs plugin API 2, this program provides 1"),
    "api-text": ("vally_api = '1'", "vally_api must be an integer, not '1'"),
}


def reason(case: str, module: str) -> str:
    import vally

    return BROKEN[case][1].format(module=module, vally=vally.__file__)


@pytest.mark.parametrize("case", BROKEN)
def test_installed(site: Site, case: str) -> None:
    site.grader("fine", "1.0", "good", module="fine_plugin")
    site.distribution("bad", "2.0", graders={"label": "bad_plugin"}, files={"bad_plugin.py": BROKEN[case][0]})
    plugins = host()
    expected = reason(case, "bad_plugin.py")
    assert names(plugins) == ["good"]
    assert plugins.problems(["grader"]) == ()
    assert plugins.take_warnings() == [f"plugin 'label' of bad 2.0 cannot be used: {expected}"]
    assert plugins.take_warnings() == []
    (failure,) = plugins.failures("grader")
    assert (failure.label, failure.reason) == ("label", expected)
    (row,) = [row for row in plugins.listing(["grader"]) if row.name == "label"]
    assert row.status == f"failed: {expected}"


@pytest.mark.parametrize("case", BROKEN)
def test_explicit(site: Site, work: Path, case: str) -> None:
    write_files(work, {"bad.py": BROKEN[case][0]})
    plugins = host(("grader", "./bad.py"), cwd=work)
    expected = f"plugin './bad.py': {reason(case, 'bad.py')}"
    assert problem(plugins) == expected
    with pytest.raises(PluginError) as caught:
        plugins.require("grader", "anything")
    assert caught.value.message == expected
    assert caught.value.code == "plugin-load-failed"


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "MemoryError"])
def test_what_ends_the_program(site: Site, error: str) -> None:
    site.distribution("bad", "2.0", graders={"label": "bad_stop"}, files={"bad_stop.py": f"raise {error}"})
    with pytest.raises((KeyboardInterrupt, MemoryError)):
        host().records("grader")


def test_all_or_nothing_per_plugin(site: Site) -> None:
    text = HOOK + f"    yield {RECORD}\n    yield GraderSpec(name='B', summary='fine', factory=dict)\n"
    site.distribution("half", "1.0", graders={"half": "half_plugin"}, files={"half_plugin.py": text})
    plugins = host()
    assert names(plugins) == []
    assert len(plugins.failures("grader")) == 1


def test_one_warning_for_a_module_in_several_groups(site: Site) -> None:
    groups = {"vally.graders": {"x": "both_bad"}, "vally.executors": {"x": "both_bad"}}
    text = COUNTS_IMPORTS + "1/0\n"
    site.distribution("bad", "1.0", groups=groups, files={"both_bad.py": text})
    plugins = host()
    assert (names(plugins, "grader"), names(plugins, "executor")) == ([], [])
    assert plugins.warnings() == ["plugin 'x' of bad 1.0 cannot be used: ZeroDivisionError: division by zero"]
    assert (site.path / "count").read_text() == "x"


def test_all_explicit_failures_are_reported(site: Site, work: Path) -> None:
    write_files(work, {"a.py": "1/0", "b.py": "x = 1"})
    plugins = host(("grader", "./a.py"), ("grader", "./b.py"), ("executor", "./none.py"), cwd=work)
    messages = [error.message for error in plugins.problems(["grader", "executor"])]
    assert sorted(messages) == [
        "plugin './a.py': ZeroDivisionError: division by zero",
        "plugin './b.py': provides no grader",
        "plugin './none.py': no entry point, distribution, module or path of that name",
    ]


def test_an_unknown_keyword_lists_near_matches_and_failed_plugins(site: Site) -> None:
    site.grader("fine", "1.0", "file-exists", module="fine_plugin")
    site.distribution("bad", "1.0", graders={"bad": "bad_plugin"}, files={"bad_plugin.py": "import surely_missing"})
    with pytest.raises(PluginError) as caught:
        host().require("grader", "file-exist")
    assert caught.value.message == "unknown grader type 'file-exist'"
    assert caught.value.hints == (
        "did you mean 'file-exists'?",
        "failed plugins: bad (No module named 'surely_missing')",
    )


def test_an_unknown_executor_lists_the_available_ones(site: Site) -> None:
    files = {"exec_plugin.py": provider("alpha", "beta", kind="executor")}
    site.distribution("execs", "1.0", groups={"vally.executors": {"e": "exec_plugin"}}, files=files)
    with pytest.raises(PluginError) as caught:
        host().require("executor", "gamma")
    assert caught.value.message == "no executor named 'gamma'"
    assert caught.value.hints == ("executors: alpha, beta",)


def test_a_traceback_is_kept_for_the_verbose_list(site: Site, work: Path) -> None:
    write_files(work, {"bad.py": "def inner():\n    raise ValueError('deep')\ninner()\n"})
    (row,) = host(("grader", "./bad.py"), cwd=work).listing(["grader"])
    assert "in inner" in row.trace
    assert row.state == "failed"


def test_without_kinds_those_with_named_plugins_are_checked(site: Site, work: Path) -> None:
    write_files(work, {"a.py": "1/0"})
    site.distribution("bad", "1.0", groups={"vally.executors": {"x": "bad_exec"}}, files={"bad_exec.py": "1/0"})
    plugins = host(("grader", "./a.py"), cwd=work)
    assert [error.message for error in plugins.problems()] == ["plugin './a.py': ZeroDivisionError: division by zero"]
    assert plugins.warnings() == []


def test_what_enables_a_capability_is_told_of_one_that_there_is(site: Site, work: Path) -> None:
    text = provider("e", kind="executor").replace("name='e'", "name='e', enabled_by={'skils': 'x'}")
    write_files(work, {"e.py": text})
    message = "enabled_by of 'e': there is no capability 'skils'"
    with pytest.raises(PluginError, match=message):
        host(("executor", "./e.py"), cwd=work).require("executor", "e")


WRONG_FACTS = {
    "word": (
        "grader",
        "determinism='wild'",
        "determinism of 'x' must be 'static' or 'complex-static' or 'slm' or 'llm'",
    ),
    "word-or-none": ("grader", "oracle='both'", "oracle of 'x' must be 'trajectory' or 'state' or 'either' or 'none'"),
    "flag": ("grader", "requires_workspace='no'", "requires_workspace of 'x' must be True or False, not 'no'"),
    "flag-of-all-kinds": ("executor", "blocking=0", "blocking of 'x' must be True or False, not 0"),
    "flag-or-none": ("grader", "turn='yes'", "turn of 'x' must be True, False or None, not 'yes'"),
    "one-text-for-many": ("grader", "hints='abc'", "hints of 'x' must be a tuple of texts, not 'abc'"),
    "texts": ("judge", "provider_types=(5,)", "provider_types of 'x' must be a tuple of texts, not (5,)"),
    "text": ("grader", "docs=5", "docs of 'x' must be a text or None, not 5"),
    "number": ("reporter", "order='first'", "order of 'x' must be a number, not 'first'"),
    "table": ("reporter", "files=['a']", "files of 'x' must be a mapping of texts to texts, not ['a']"),
    "options": ("reporter", "options=5", "options of 'x' must be a tuple of ReporterOption, not 5"),
    "capabilities": (
        "executor",
        "capabilities={'mcp': True}",
        "capabilities of 'x' must be Capabilities, not {'mcp': True}",
    ),
    "constraint": (
        "grader",
        "constraints={'max_words': 'max'}",
        "constraints of 'x': there is no constraint 'max_words'",
    ),
}


@pytest.mark.parametrize("case", WRONG_FACTS)
def test_facts_of_records_are_checked(site: Site, work: Path, case: str) -> None:
    kind, fact, message = WRONG_FACTS[case]
    write_files(work, {"x.py": provider("x", kind=kind).replace("name='x'", f"name='x', {fact}")})
    with pytest.raises(PluginError) as caught:
        host((kind, "./x.py"), cwd=work).require(kind, "x")
    assert caught.value.message.startswith(f"plugin './x.py': {message}")
