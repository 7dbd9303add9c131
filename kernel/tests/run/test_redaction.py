"""Secrets never reach what is written or printed."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from typing import Any
from urllib.parse import quote
from xml.sax import saxutils

import pytest

from vally.run.redaction import Redactor, redact_environment_maps, redact_patterns
from vally.run.secret_forms import secret_forms
from vally.text.secret_names import is_secret_name

TOKEN = "abcdefghijkl"
QUOTED = """t0k/e+n"<&5>'zq9Wx"""
REDACTOR = Redactor({"GITHUB_TOKEN": TOKEN, "HOME": "/home/someone"})


@pytest.mark.parametrize(
    ("environ", "text", "written"),
    [
        pytest.param({"GITHUB_TOKEN": TOKEN}, f"token {TOKEN}!", "token <redacted:GITHUB_TOKEN>!", id="RD-1"),
        pytest.param(
            {"GITHUB_TOKEN": TOKEN},
            base64.b64encode(TOKEN.encode()).decode(),
            "<redacted:GITHUB_TOKEN>",
            id="RD-2",
        ),
        pytest.param({"MY_KEY": "abc"}, "abc", "abc", id="RD-3"),
        pytest.param({"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefghij"}, "abcdefghij", "<redacted:B_TOKEN>", id="RD-6"),
    ],
)
def test_known_values(environ: dict[str, str], text: str, written: str) -> None:
    assert Redactor(environ).text(text) == written


@pytest.mark.parametrize("where", ["environment", "agent_environment"], ids=["RD-4", "RD-4b"])
def test_environment_maps(where: str) -> None:
    spec = {where: {"env": {"A": "x"}, "mcp_servers": {"s": {"headers": {"H": "y"}, "env": {"B": "z"}}}}, "tags": ["t"]}
    redacted = redact_environment_maps(spec)
    assert redacted[where]["env"] == {"A": "<redacted>"}
    assert redacted[where]["mcp_servers"]["s"] == {"headers": {"H": "<redacted>"}, "env": {"B": "<redacted>"}}
    assert redacted["tags"] == ["t"]
    assert spec[where]["env"] == {"A": "x"}  # type: ignore[index]


def test_env_that_is_no_map_stays() -> None:
    document = {"tags": {"env": "staging"}, "graders": [{"config": {"env": {"K": 1}}}]}
    assert redact_environment_maps(document) == {
        "tags": {"env": "staging"},
        "graders": [{"config": {"env": {"K": "<redacted>"}}}],
    }


@pytest.mark.parametrize("key", ["sk-" + "b" * 30], ids=["RD-5"])
def test_unknown_keys_are_redacted_for_people_only(key: str) -> None:
    assert REDACTOR.text(key) == key
    assert REDACTOR.value({"output": key}) == {"output": key}
    assert REDACTOR.console(f"key {key}") == "key <redacted>"


AWKWARD = 'p"a\\ss/w%rd é~value'


@pytest.mark.parametrize(
    "form",
    [
        AWKWARD,
        json.dumps(AWKWARD)[1:-1],
        json.dumps(AWKWARD, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(AWKWARD))[3:-3],
        quote(AWKWARD),
        quote(AWKWARD, safe=""),
        quote(AWKWARD, safe="").lower(),
        base64.b64encode(AWKWARD.encode()).decode(),
        base64.b64encode(AWKWARD.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(AWKWARD.encode()).decode(),
    ],
)
def test_spellings_of_a_value(form: str) -> None:
    assert Redactor({"X_SECRET": AWKWARD}).text(f"<{form}>") == "<<redacted:X_SECRET>>"


@pytest.mark.parametrize("user", ["", "a", "ab", "user"])
def test_a_value_coded_with_its_surroundings(user: str) -> None:
    header = base64.b64encode(f"{user}:{TOKEN}:x".encode()).decode()
    written = REDACTOR.text(f"Authorization: Basic {header}")
    assert "<redacted:GITHUB_TOKEN>" in written
    assert len(written) > len("Authorization: Basic <redacted:GITHUB_TOKEN>")


@pytest.mark.parametrize(
    "written",
    [
        html.escape(QUOTED),
        html.escape(QUOTED, quote=False),
        html.escape(QUOTED).replace("&#x27;", "&#39;"),
        html.escape(QUOTED).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        saxutils.escape(QUOTED),
        saxutils.escape(QUOTED, {'"': "&quot;", "'": "&apos;"}),
        QUOTED.replace("&", "&amp;").replace("<", "&lt;"),
        saxutils.escape(QUOTED, {'"': "&quot;"}),
        shlex.quote(QUOTED).strip("'"),
        QUOTED.replace("'", "'\\''"),
    ],
)
def test_forms_in_markup_and_in_shells(written: str) -> None:
    assert Redactor({"A_TOKEN": QUOTED}).text(f"<p>{written}</p>") == "<p><redacted:A_TOKEN></p>"


HARD = "p@ss'w\"o$rd\\ with `x` & <é> #1,2{3}"


@pytest.mark.parametrize(
    "written",
    [
        repr(HARD)[1:-1],
        repr([HARD])[2:-2],
        ascii(HARD)[1:-1],
        repr(HARD.encode())[2:-1],
        json.dumps(repr(HARD), ensure_ascii=False)[2:-2],
        repr(QUOTED.replace('"', ""))[1:-1],
        repr(QUOTED.replace("'", ""))[1:-1],
        re.escape(HARD),
        re.sub(r"\W", r"\\\g<0>", HARD),
        r"p@ss\'w\"o\$rd\\\ with\ \`x\`\ \&\ \<é\>\ #1\,2\{3\}",  # printf %q of bash
        HARD.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`"),
        HARD.encode().hex(),
        HARD.encode().hex().upper(),
    ],
)
def test_forms_in_programs_and_in_hex(written: str) -> None:
    secrets = {"A_TOKEN": HARD, "B_TOKEN": QUOTED.replace('"', ""), "C_TOKEN": QUOTED.replace("'", "")}
    assert re.fullmatch(r"\(<redacted:[ABC]_TOKEN>\)", Redactor(secrets).text(f"({written})"))


def test_wrapped_hex() -> None:
    digits = ("v" * 40).encode().hex()
    written = Redactor({"LONG_TOKEN": "v" * 40}).text(f"{digits[:60]}\n{digits[60:]}\n")
    assert written == "<redacted:LONG_TOKEN>\n<redacted:LONG_TOKEN>\n"


def test_a_plain_value_has_few_forms_and_short_lines_none_in_hex() -> None:
    # Every form is looked for in every text.
    assert len(secret_forms("abcDEF0123456789abcDEF01")) <= 8
    assert len(secret_forms("abc-DEF.0123456789_abcDEF01")) <= 9
    digest = f"x{b'abcdefg'.hex()}{b'-END KE'.hex()}"
    assert Redactor({"DEPLOY_KEY": "abcdefg\n-END KE\nlong enough"}).text(digest) == digest


def test_wrapped_base64() -> None:
    value = "v" * 40 + "w" * 50
    coded = base64.encodebytes(value.encode()).decode()
    written = Redactor({"LONG_TOKEN": value}).text(coded)
    assert written == "<redacted:LONG_TOKEN>\n<redacted:LONG_TOKEN>\n"


def test_values_of_several_lines_keep_the_line_count() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabcdefgh\nxyzxyzxyz012\n-----END PRIVATE KEY-----\n"
    redactor = Redactor({"DEPLOY_KEY": key})
    diff = "".join(f"+{line}\n" for line in key.splitlines())
    written = redactor.text(diff)
    assert written.count("\n") == diff.count("\n")
    assert "MIIabcdefgh" not in written
    assert "xyzxyzxyz012" not in written
    assert redactor.text(json.dumps({"k": key})) == '{"k": "<redacted:DEPLOY_KEY>"}'


@pytest.mark.parametrize("value", ["true", "production", "Localhost", "development", "1234567", ""])
def test_values_that_are_not_looked_for(value: str) -> None:
    assert Redactor({"A_TOKEN": value}).text(f"x {value} y") == f"x {value} y"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("GITHUB_TOKEN", True),
        ("token", True),
        ("api_key", True),
        ("MONKEY", False),
        ("OPENAIAPIKEY", True),
        ("client_secret", True),
        ("DB_PASSWORD", True),
        ("AZURE_PAT", True),
        ("COMPAT", False),
        ("SQL_CONNECTION_STRING", True),
        ("GOOGLE_CREDENTIALS", True),
        ("TOKEN_FILE", False),
        ("PATH", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_named_variables_and_parameters() -> None:
    redactor = Redactor(
        {"MY_ENDPOINT_AUTH": "value-of-auth", "OTHER": "value-of-other"},
        variables=["MY_ENDPOINT_AUTH", "UNSET"],
        parameters={
            "db password": "not-a-name!",
            "my-token": "value-of-param",
            "plain": "value-of-plain",
            "a_key": ["value-1-x", "value-2-x"],
        },
    )
    assert redactor.text("value-of-auth value-of-other value-of-plain") == (
        "<redacted:MY_ENDPOINT_AUTH> value-of-other value-of-plain"
    )
    assert redactor.text("value-of-param value-2-x") == "<redacted:my-token> <redacted:a_key>"
    assert redactor.text("not-a-name!") == "<redacted:db_password>"


def test_deep_copies_and_counts() -> None:
    value = {"a": [f"x{TOKEN}{TOKEN}", 5, None, {TOKEN: True}], "b": ("c",)}
    copy, count = REDACTOR.count_value(value)
    marker = "<redacted:GITHUB_TOKEN>"
    assert copy == {"a": [f"x{marker}{marker}", 5, None, {marker: True}], "b": ["c"]}
    assert count == 3
    assert value["a"][0] == f"x{TOKEN}{TOKEN}"
    assert REDACTOR.count(f"{TOKEN} {TOKEN}") == (f"{marker} {marker}", 2)


def test_a_second_pass_changes_nothing() -> None:
    redactor = Redactor({"A_TOKEN": "GITHUB_TOKEN", "GITHUB_TOKEN": TOKEN})
    once = redactor.text(f"{TOKEN} GITHUB_TOKEN")
    assert once == "<redacted:GITHUB_TOKEN> <redacted:A_TOKEN>"
    assert redactor.text(once) == once


def test_without_secrets_nothing_changes() -> None:
    redactor = Redactor({})
    assert redactor.text(TOKEN) == TOKEN
    assert redactor.count_value({"a": TOKEN}) == ({"a": TOKEN}, 0)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ghp_" + "a1" * 18, "<redacted>"),
        ("ghs_" + "a1" * 18 + ".", "<redacted>."),
        ("github_pat_" + "A_1" * 10, "<redacted>"),
        ("sk-short", "sk-short"),
        ("task-" + "a" * 30, "task-" + "a" * 30),
        ("AKIAABCDEFGHIJKLMNOP", "<redacted>"),
        ("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "<redacted>"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer <redacted>"),
        ("the bearer of news", "the bearer of news"),
        ("git clone https://me:pw@host/x.git", "git clone https://<redacted>@host/x.git"),
        ("see https://host/a@b", "see https://host/a@b"),
        ("mail me@host", "mail me@host"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY----- b", "a <redacted> b"),
        ("-----BEGIN PRIVATE KEY-----\ncut", "<redacted>"),
    ],
)
def test_patterns(text: str, written: str) -> None:
    assert redact_patterns(text) == written


def test_known_values_keep_their_name_on_the_console() -> None:
    redactor = Redactor({"GH_TOKEN": "ghp_" + "a1" * 18})
    assert redactor.console("ghp_" + "a1" * 18) == "<redacted:GH_TOKEN>"


def test_patches_keep_their_binary_parts() -> None:
    binary = f"GIT binary patch\nliteral 10\nz{TOKEN}\n\ndelta 3\nz{TOKEN}\n\n"
    patch = f"diff --git a/x b/x\n+{TOKEN}\n".encode() + b"+\xff\xfe raw\n" + binary.encode() + f"-{TOKEN}\n".encode()
    assert REDACTOR.patch(patch) == (
        b"diff --git a/x b/x\n+<redacted:GITHUB_TOKEN>\n+\xff\xfe raw\n"
        + binary.encode()
        + b"-<redacted:GITHUB_TOKEN>\n"
    )


@pytest.mark.parametrize("piece", ["a", "a.b", "eyJaaaa.", "x://", "-----BEGIN PRIVATE KEY", "sk-", "Bearer "])
def test_patterns_are_quick_on_hostile_text(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert isinstance(redact_patterns(text), str)


def test_markers_need_no_escaping() -> None:
    redactor = Redactor(parameters={'odd "name"\n_TOKEN': "value-of-odd"})
    written: Any = redactor.text("value-of-odd")
    assert json.dumps(written) == f'"{written}"'
    assert written == "<redacted:odd__name___TOKEN>"
