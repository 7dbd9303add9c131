"""Items as reporters see them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from vally import Environment, McpServer, Redactor, TrialItem
from vally.run.shown_items import ShownItems
from vally.testing import stimulus, trial_item

SECRET = "s3cr3t-value"


def item_of(root: Path, **fields: Any) -> TrialItem:
    server = McpServer(name="s", type="http", url="http://h", headers={"auth": "x"}, env={"B": "y"})
    environment = Environment(env={"A": "plain"}, mcp_servers={"s": server})
    made = replace(
        stimulus(f"say {SECRET}"),
        turns=(f"say {SECRET}", "more"),
        environment=environment,
        effective_environment=environment,
        document={"prompt": f"say {SECRET}", "environment": {"env": {"A": "plain"}}},
    )
    return trial_item(root, made, **fields)


def test_secrets_are_left_out(tmp_path: Path) -> None:
    item = item_of(tmp_path)
    shown = ShownItems(Redactor({"MY_TOKEN": SECRET})).of(item)
    assert SECRET not in repr(shown)
    assert "plain" not in repr(shown)
    assert shown.stimulus.prompt == "say <redacted:MY_TOKEN>"
    assert shown.stimulus.turns == ("say <redacted:MY_TOKEN>", "more")
    assert shown.stimulus.merged_environment.env == {"A": "<redacted>"}
    assert shown.stimulus.merged_environment.mcp_servers["s"].headers == {"auth": "<redacted>"}
    assert SECRET in item.stimulus.prompt


def test_everything_else_is_the_same(tmp_path: Path) -> None:
    shown = ShownItems(Redactor({}))
    first, second = (item_of(tmp_path, trial_index=index, total_trials=2) for index in range(2))
    assert (shown.of(first).trial_index, shown.of(second).trial_index) == (0, 1)
    assert shown.of(first).stimulus is shown.of(second).stimulus
    assert replace(shown.of(first), stimulus=first.stimulus) == first
