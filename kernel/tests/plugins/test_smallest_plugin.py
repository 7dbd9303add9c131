"""The smallest package and the same as one file: they load, are listed and grade."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_sites import Site, host, write_files

from vally import ConfigInvalid, PluginHost
from vally.testing import event, grade, trajectory

PACKAGE = {
    "pyproject.toml": """\
        [build-system]
        requires = ["flit_core>=3.11,<4"]
        build-backend = "flit_core.buildapi"
        [project]
        name = "acme-graders"
        version = "0.1.0"
        description = "Word limits for vally"
        dependencies = ["vally-kernel>=1,<2"]
        [project.entry-points."vally.graders"]
        acme = "acme_graders.plugin"
        """,
    "src/acme_graders/__init__.py": "",
    "src/acme_graders/plugin.py": """\
        from vally import GraderSpec, hookimpl
        vally_api = 1
        @hookimpl
        def vally_graders():
            yield GraderSpec(name="max-words", summary="the answer has at most N words",
                             factory="acme_graders.max_words:MaxWords", config="acme_graders.max_words:MaxWordsConfig")
        """,
    "src/acme_graders/max_words.py": """\
        from pydantic import Field
        from vally import Config, GraderInput, GraderResult

        class MaxWordsConfig(Config):
            max: int = Field(ge=0)

        class MaxWords:
            def grade(self, input: GraderInput[MaxWordsConfig]) -> GraderResult:
                words = len(input.trajectory.output.split())
                return GraderResult.verdict(words <= input.config.max, f"{words} words (at most {input.config.max})")
        """,
}
FILE = {
    "max_words.py": """\
        from pydantic import Field
        from vally import Config, GraderInput, GraderResult, grader

        class MaxWordsConfig(Config):
            max: int = Field(ge=0)

        @grader("max-words", config=MaxWordsConfig)
        def max_words(input: GraderInput[MaxWordsConfig]) -> GraderResult:
            \"\"\"The answer has at most N words.\"\"\"
            words = len(input.trajectory.output.split())
            return GraderResult.verdict(words <= input.config.max, f"{words} words (at most {input.config.max})")
        """
}


def as_package(work: Path) -> PluginHost:
    write_files(work / "acme-graders", PACKAGE)
    return host(("grader", "./acme-graders"), cwd=work)


def as_file(work: Path) -> PluginHost:
    write_files(work, FILE)
    return host(("grader", "./max_words.py"), cwd=work)


FORMS = {"package": as_package, "file": as_file}


@pytest.mark.parametrize("form", FORMS)
def test_it_grades(site: Site, work: Path, form: str) -> None:
    plugins = FORMS[form](work)
    answer = trajectory(event("assistant_message", content="one two three"))
    short = grade("max-words", {"max": 3}, answer, host=plugins)
    long = grade("max-words", {"max": 2}, answer, host=plugins)
    assert (short.passed, short.score, short.evidence) == (True, 1, "3 words (at most 3)")
    assert (long.passed, long.score, long.evidence) == (False, 0, "3 words (at most 2)")
    assert (long.name, long.grader_type, long.label) == ("max-words", "max-words", "incorrect")


@pytest.mark.parametrize("form", FORMS)
def test_its_config_is_checked(site: Site, work: Path, form: str) -> None:
    plugins = FORMS[form](work)
    with pytest.raises(ConfigInvalid, match="Invalid config for max-words: 'max' must be at least 0"):
        plugins.parse_config(plugins.require("grader", "max-words"), {"max": -1})


@pytest.mark.parametrize(
    ("form", "version", "source"), [("package", "0.1.0", "./acme-graders"), ("file", None, "./max_words.py")]
)
def test_it_is_listed(site: Site, work: Path, form: str, version: str | None, source: str) -> None:
    (row,) = FORMS[form](work).listing(["grader"])
    assert (row.name, row.version, row.source, row.status) == ("max-words", version, source, "ok")
    assert row.description is not None
    assert row.description.lower() == "the answer has at most n words"
