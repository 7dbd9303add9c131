"""What a skill needs, against a list of what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from vally.testing import CliResult, ProjectBuilder

BODY = "Use #tool:bash, #tool:azure/query and #tool:azure/query.\n\nThen #tool:Zip."


@pytest.fixture
def scan(project: ProjectBuilder, lint_json: Any) -> Any:
    def run(allowed: str, *args: str, description: str = "Reads. INVOKES: scripts/run.py") -> dict[str, Any]:
        project.skill("reader", BODY, description=description)
        project.file("skills/reader/scripts/x.sh", "echo")
        project.file("skills/reader/scripts/deep/y.ps1", "echo")
        project.file("skills/reader/scripts/data.json", "{}")
        project.file("skills/reader/other/z.sh", "echo")
        project.file("allowed.txt", allowed)
        return dict(lint_json("skills", "--allowed-external-deps", "allowed.txt", *args))

    return run


def check_of(report: dict[str, Any]) -> dict[str, Any]:
    (check,) = (check for check in report["skills"][0]["checks"] if check["id"] == "dependency-scan")
    return dict(check)


def test_every_dependency_without_an_entry_is_a_warning_that_is_the_entry(scan: Any) -> None:
    report = scan("")
    check = check_of(report)
    assert [(item["message"], item["line"], item["column"]) for item in check["findings"]] == [
        ("script:reader:scripts/deep/y.ps1", None, None),
        ("script:reader:scripts/x.sh", None, None),
        ("invokes:reader", 3, 14),
        ("tool-ref:reader:#tool:azure/query", 8, 17),
        ("tool-ref:reader:#tool:Zip", 10, 6),
    ]
    assert {(item["code"], item["level"]) for item in check["findings"]} == {("unlisted-dependency", "warning")}
    assert check["summary"] == "5 dependencies, 5 not listed"
    assert report["passed"]
    assert not scan("", "--strict")["passed"]


def test_the_messages_are_a_file_that_allows_everything(scan: Any) -> None:
    keys = [item["message"] for item in check_of(scan(""))["findings"]]
    report = scan("# all\n" + "\n".join(key.upper() for key in keys) + "  # the last\n", "--strict")
    assert report["passed"]
    assert check_of(report)["findings"] == []
    assert report["findings"] == []


def test_an_entry_that_matches_nothing_is_told(scan: Any) -> None:
    report = scan("agent-tool:x\nmcp-server:y\n\nscript:other:scripts/x.sh\n")
    (found,) = report["findings"]
    assert (found["code"], found["level"]) == ("unused-allow-entry", "info")
    assert (found["file"], found["line"]) == ("allowed.txt", 4)


def test_another_prefix_is_an_error(project: ProjectBuilder, cli: Any) -> None:
    project.skill("reader")
    project.file("allowed.txt", "script:a:b\nscripts:reader:x\n")
    result: CliResult = cli("--allowed-external-deps", "allowed.txt")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: allowed.txt:2: 'scripts:reader:x' must start with one of script:")


@pytest.mark.parametrize(
    ("description", "found"),
    [
        ("INVOKES run.ps1", True),
        ("invokes `Get-Thing.ps1`", True),
        ("INVOKES: the tool", False),
        ("Uses run.py", False),
        ("INVOKES nothing. Then more.", False),
    ],
)
def test_a_description_invokes_a_name_with_an_extension(description: str, found: bool, scan: Any) -> None:
    messages = [item["message"] for item in check_of(scan("", description=description))["findings"]]
    assert ("invokes:reader" in messages) is found
