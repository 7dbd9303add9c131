"""Two providers of one name."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import Site, host, names, problem, provider, write_files

from vally import GraderSpec, PluginError, PluginHost, PluginSources

BOTH = "grader 'same' is provided by a-plugin 1.0 and b-plugin 2.0"
HINT = "leave one out with --no-plugin a-plugin or --no-plugin b-plugin"


@pytest.fixture
def two(site: Site) -> Site:
    site.grader("b-plugin", "2.0", "same", "b-own", module="b_mod")
    site.grader("a-plugin", "1.0", "same", "a-own", module="a_mod")
    return site


def test_two_installed_providers_are_both_inactive(two: Site) -> None:
    plugins = host()
    assert names(plugins) == ["a-own", "b-own"]
    assert plugins.warnings() == [f"{BOTH}; it is not available, {HINT}"]


def test_using_the_name_is_an_error_instead_of_a_warning(two: Site) -> None:
    plugins = host()
    with pytest.raises(PluginError) as caught:
        plugins.require("grader", "same")
    assert (caught.value.message, caught.value.hints) == (BOTH, (HINT,))
    assert plugins.take_warnings() == []


@pytest.mark.parametrize(("off", "version"), [("a-plugin", "2.0"), ("B_Plugin", "1.0")])
def test_leaving_one_out_settles_it(two: Site, off: str, version: str) -> None:
    plugins = host(no_plugin=(off,))
    assert plugins.version(plugins.require("grader", "same")) == version
    assert plugins.warnings() == []


def test_both_rows_are_listed(two: Site) -> None:
    rows = [(row.version, row.status) for row in host().listing(["grader"]) if row.name == "same"]
    assert rows == [("1.0", "conflicts with b-plugin 2.0"), ("2.0", "conflicts with a-plugin 1.0")]


def test_a_built_in_is_no_exception(two: Site) -> None:
    two.distribution("vally", "9.0", requires=["a-plugin"])
    plugins = host()
    rows = [(row.source, row.status) for row in plugins.listing(["grader"]) if row.name == "same"]
    assert rows == [
        ("built in", "conflicts with b-plugin 2.0"),
        ("entry point b-plugin", "conflicts with built in"),
    ]


def test_three_providers(two: Site) -> None:
    two.grader("c-plugin", "3.0", "same", module="c_mod")
    with pytest.raises(PluginError, match=r"a-plugin 1\.0 and b-plugin 2\.0 and c-plugin 3\.0"):
        host().require("grader", "same")


def test_two_modules_of_one_distribution(site: Site) -> None:
    files = {"m_one.py": provider("same"), "m_two.py": provider("same")}
    site.distribution("a-plugin", "1.0", graders={"a": "m_one", "b": "m_two"}, files=files)
    with pytest.raises(PluginError, match=r"a-plugin 1\.0 \(m_one\) and a-plugin 1\.0 \(m_two\)"):
        host().require("grader", "same")


def test_explicit_and_another_distribution(site: Site, work: Path) -> None:
    site.grader("a-plugin", "1.0", "same", module="a_mod")
    write_files(work, {"x.py": provider("same")})
    assert problem(host(("grader", "./x.py"), cwd=work)) == "grader 'same' is provided by a-plugin 1.0 and ./x.py"


def test_two_explicit_files(site: Site, work: Path) -> None:
    write_files(work, {"x.py": provider("same"), "y.py": provider("same")})
    plugins = host(("grader", "./x.py"), ("grader", "./y.py"), cwd=work)
    assert problem(plugins) == "grader 'same' is provided by ./x.py and ./y.py"


def test_an_installed_plugin_named_explicitly_conflicts_like_any_explicit_one(two: Site, work: Path) -> None:
    assert problem(host(("grader", "a-plugin"), cwd=work)) == BOTH


def test_order_never_matters(two: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    other = two.path.parent / "second"
    Site(other).grader("0-first", "1.0", "same", module="first_mod")
    results = []
    for paths in ([str(two.path), str(other)], [str(other), str(two.path)]):
        monkeypatch.setattr(sys, "path", [*paths, *(entry for entry in sys.path if entry not in paths)])
        plugins = host()
        results.append((names(plugins), plugins.warnings(), plugins.listing(["grader"])))
    assert results[0] == results[1]


def test_two_graders_for_one_constraint(site: Site) -> None:
    text = provider("x").replace("factory=dict", "factory=dict, constraints={'max_turns': 'max'}")
    site.distribution("a", "1.0", graders={"a": "one_mod"}, files={"one_mod.py": text})
    plugins = host()
    provided = plugins.constraint_provider("max_turns")
    assert provided is not None
    assert (provided.name, plugins.constraint_provider("max_tokens")) == ("x", None)
    site.distribution("b", "1.0", graders={"b": "two_mod"}, files={"two_mod.py": text.replace("'x'", "'y'")})
    with pytest.raises(PluginError) as caught:
        host().constraint_provider("max_turns")
    assert caught.value.message == "constraint 'max_turns' is implemented by graders 'x' of a 1.0 and 'y' of b 1.0"
    assert list(caught.value.hints) == ["leave one out with --no-plugin a or --no-plugin b"]


def test_what_a_program_hands_over_takes_the_place_of_an_installed_one(site: Site, work: Path) -> None:
    site.grader("a-plugin", "1.0", "same", module="a_mod")
    own = GraderSpec(name="same", summary="own", factory=object)
    other = GraderSpec(name="same", summary="other", factory=object)
    plugins = PluginHost(sources=PluginSources(objects=(own,)))
    assert plugins.require("grader", "same") is own
    assert plugins.warnings() == []
    with pytest.raises(PluginError, match="grader 'same' is provided by"):
        PluginHost(sources=PluginSources(objects=(own, other))).require("grader", "same")
