"""Texts of others are text on the page, and the page makes no request."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from vally import ErrorInfo
from vally.testing import event, trajectory, trial_result

Make = Callable[..., Any]
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"><svg onload=alert(3)></style>"
    "<!--{{ 7*7 }}{% raw %}]]>\x1b[31m\x00\u202e\ud800&amp;`${1}"
)


@pytest.fixture
def hostile(report: Make, grader: Make) -> Any:
    said = [
        event(kind, content=HOSTILE, message=HOSTILE, name=HOSTILE, eventType=HOSTILE, toolName=HOSTILE, toolCallId="c")
        for kind in ("user_message", "assistant_message", "error", "skill_activation", "custom", "tool_call", HOSTILE)
    ]
    said += [event("tool_result", toolName=HOSTILE, toolCallId="c", success=False, result={HOSTILE: [HOSTILE]})]
    said[0].agent_id = said[0].agent_name = HOSTILE
    done = trajectory(*said, output=HOSTILE, diff=f"diff --git a/{HOSTILE} b/{HOSTILE}\n@@ {HOSTILE}\n+{HOSTILE}\n")
    done = done.model_copy(
        update={"stimulus": {"prompt": HOSTILE}, "metadata": {"model": HOSTILE}, "end_reason": HOSTILE}
    )
    names = {"eval_name": HOSTILE, "model": HOSTILE, "total_trials": 3}
    nested = grader(
        HOSTILE, False, HOSTILE, grader_type=HOSTILE, metadata={HOSTILE: HOSTILE, "error": {"kind": HOSTILE}}
    )
    return report(
        trial_result(HOSTILE, grader("panel", details=[nested]), nested, trajectory=done, warnings=[HOSTILE], **names),
        trial_result(HOSTILE, grader("g", None, HOSTILE), trial_index=1, **names),
        trial_result(HOSTILE, status="skipped", skip_reason=HOSTILE, trial_index=2, **names),
        trial_result("e", status="error", error=HOSTILE, error_info=ErrorInfo(message="x", code=HOSTILE), **names),
        stop_reason=HOSTILE,
        threshold=0.5,
    )


def test_no_text_becomes_markup(hostile: Any) -> None:
    assert len(hostile.all("script")) == len(hostile.all("style")) == 1
    assert not hostile.all("img")
    assert not [e for e in hostile.elements if any(key.startswith("on") or key == "style" for key in e.attributes)]
    assert hostile.text.count("&lt;img src=x onerror=alert(2)&gt;") > 20
    assert "49" not in re.sub("[0-9a-zA-Z+/=]{30,}", "", hostile.text).split("</style>")[0]


def test_no_control_character_is_left(hostile: Any) -> None:
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", hostile.text)


def test_the_page_makes_no_request(hostile: Any) -> None:
    for element in hostile.elements:
        assert not {"src", "srcset", "action", "formaction", "data", "poster", "background"} & set(element.attributes)
        assert element.attributes.get("href", "#").startswith("#")
        assert element.tag not in ("link", "iframe", "object", "embed", "base", "form")
    style = hostile.one("style").text
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|WebSocket|eval|innerHTML)\b", hostile.one("script").text)


def test_the_policy_lets_only_our_own_code_run(hostile: Any) -> None:
    (policy,) = [
        e.attributes["content"]
        for e in hostile.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        digest = base64.b64encode(hashlib.sha256(hostile.one(tag).text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_the_policy_stands_before_anything_it_governs(hostile: Any) -> None:
    tags = [e.tag for e in hostile.elements if e.tag in ("meta", "style", "script")]
    assert tags[1] == "meta"
    assert tags.index("style") > 1


def test_credentials_in_errors_are_hidden(report: Make) -> None:
    token = "ghp_" + "a1" * 15
    page = report(trial_result("e", status="error", error=f"401 with {token}"))
    assert token not in page.text
    assert "401 with &lt;redacted&gt;" in page.text
