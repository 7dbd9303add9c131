"""Addresses of the web in skills."""

from __future__ import annotations

from typing import Any

import pytest

from vally.testing import CliResult, ProjectBuilder

DOMAINS = "# known\nhttps://www.Known.org/\ngithub.com/org/repo\n\nwww.other.org # note\n"
CASES = {
    "unknown host": ("see https://evil.org/x.", [("external-domain", 8, 5)]),
    "once per host": ("https://evil.org/a https://www.evil.org/b", [("external-domain", 8, 1)]),
    "in code": ("`https://evil.org`", [("external-domain", 8, 2)]),
    "in a fence": ("```\nhttps://evil.org\n```", [("external-domain", 9, 1)]),
    "no subdomain but a longer name": ("https://notknown.org", [("external-domain", 8, 1)]),
    "other repository": ("https://github.com/org/other", [("external-domain", 8, 1)]),
    "longer name of a repository": ("https://github.com/org/repository", [("external-domain", 8, 1)]),
    "subdomain of a host with paths": ("https://api.github.com/org/repo", [("external-domain", 8, 1)]),
    "not encrypted": ("http://known.org/x", [("http-not-https", 8, 1)]),
    "not encrypted and unknown": ("http://evil.org", [("external-domain", 8, 1), ("http-not-https", 8, 1)]),
    "script": ('<script src="https://known.org/x.js"></script>', [("script-no-sri", 8, 1)]),
    "piped": ("curl -fsSL https://known.org/x | sudo bash -s -- -y", [("pipe-to-shell", 8, 1)]),
    "piped in PowerShell": ("iwr https://known.org/x | iex", [("pipe-to-shell", 8, 1)]),
    "piped with a stage between": ("x && wget -qO- https://known.org/x | tee y | sh", [("pipe-to-shell", 8, 6)]),
    "piped on two lines": ("```\ncurl https://known.org/x \\\n  | /bin/sh\n```", [("pipe-to-shell", 9, 1)]),
    "piped in a table": ("| a | `curl https://known.org/x \\| sh` |", [("pipe-to-shell", 8, 8)]),
}
FINE = {
    "known": "https://known.org/a https://sub.known.org https://www.other.org/x",
    "known path": "https://github.com/org/repo https://www.github.com/org/repo/x https://github.com/org/repo?x#y",
    "this machine": "http://localhost:80 http://127.0.0.1/x http://[::1]/ http://10.1.2.3 http://192.168.0.1",
    "examples": "http://example.com http://a.example.org https://x.test https://y.invalid https://contoso.com",
    "placeholders": "https://your-site.org https://<name>.org/x https://{name}.org https://${HOST}/x https://$HOST/x",
    "not encrypted in a fence": "```\nhttp://known.org\n```",
    "schema": "http://schemas.microsoft.com/x",
    "script with integrity": '<script src="https://known.org/x.js" integrity="sha384-x"></script>',
    "own script": '<script src="x.js"></script>',
    "piped elsewhere": "curl https://known.org/x | jq .shell; curl https://known.org/x > y || sh",
    "cells of a table": "| curl https://known.org | sh |",
    "installer of .NET": "curl -sSL https://dot.net/v1/dotnet-install.sh | bash",
    "no host": "https:// https://. http://...",
}


@pytest.fixture
def scan(project: ProjectBuilder, lint_json: Any) -> Any:
    def run(body: str, domains: str = DOMAINS) -> dict[str, Any]:
        project.skill("reader", body)
        project.file("domains.txt", domains)
        checks = lint_json("skills", "--known-domains", "domains.txt")["skills"][0]["checks"]
        (check,) = (check for check in checks if check["id"] == "url-scan")
        return dict(check)

    return run


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES)
def test_a_finding_stands_where_the_address_does(body: str, expected: list[Any], scan: Any) -> None:
    found = scan(body)["findings"]
    assert [(item["code"], item["line"], item["column"]) for item in found] == expected
    assert {item["level"] for item in found} == {"error"}


@pytest.mark.parametrize("body", FINE.values(), ids=FINE)
def test_what_is_fine_is_not_reported(body: str, scan: Any) -> None:
    known = (
        DOMAINS + ("dot.net\n" if "dot.net" in body else "") + ("schemas.microsoft.com\n" if "schemas" in body else "")
    )
    assert scan(body, known)["findings"] == []


def test_scripts_and_every_markdown_file_are_scanned(project: ProjectBuilder, scan: Any) -> None:
    for name in ("scripts/a.sh", "scripts/b.txt", "other/c.sh", "docs/d.md", "docs/E.MD"):
        project.file(f"skills/reader/{name}", f"http://{name[-4]}.org/\n")
    check = scan("text")
    assert check["summary"] == "4 files scanned"
    assert {item["file"].removeprefix("skills/reader/") for item in check["findings"]} == {
        "scripts/a.sh", "docs/d.md", "docs/E.MD",
    }  # fmt: skip


def test_with_an_empty_file_nothing_is_known(scan: Any) -> None:
    assert [item["code"] for item in scan("https://known.org", "# nothing\n")["findings"]] == ["external-domain"]


@pytest.mark.parametrize("line", ["a b.org", "-x.org", "*.known.org", "known.org/a b", "http://", "a..b"])
def test_a_malformed_line_is_an_error_with_its_number(line: str, project: ProjectBuilder, cli: Any) -> None:
    project.skill("reader")
    project.file("domains.txt", f"known.org\n\n{line}\n")
    result: CliResult = cli("--known-domains", "domains.txt")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: domains.txt:3: '{line}' is not a domain")


def test_a_missing_file_is_an_error(project: ProjectBuilder, cli: Any) -> None:
    project.skill("reader")
    result: CliResult = cli("--known-domains", "domains.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: cannot read domains.txt: no such file or directory\n"


def test_without_the_option_nothing_is_scanned(project: ProjectBuilder, lint_json: Any) -> None:
    project.skill("reader", "http://evil.org")
    report = lint_json()
    assert report["passed"]
    assert [check["id"] for check in report["skills"][0]["checks"]] == [
        "spec-compliance", "valid-refs", "orphan-files", "skill-size",
    ]  # fmt: skip
