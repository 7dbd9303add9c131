"""Templates and what they may call; every value is escaped unless it is markup made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from vally_command_results.query.metrics import Metric
from vally_command_results.server.charts import bar, sparkline
from vally_command_results.server.guard import MAX_VALUE
from vally_command_results.server.pages import numbers, text
from vally_command_results.server.pages.assets import Assets, load_assets

GLYPHS = {
    "pass": "✔",
    "fail": "✘",
    "error": "⚠",
    "skipped": "○",
    "ungraded": "–",
    "partial": "◐",
    "incomplete": "…",
}
WORDS = {
    "pass": "Pass",
    "fail": "Fail",
    "error": "Error",
    "skipped": "Skipped",
    "ungraded": "Not graded",
    "partial": "Partial",
    "incomplete": "Incomplete",
}

NAMES = frozenset({"evalName", "model", "variant", "stimulus", "tag", "grader", "tool"})


def link(path: str, parameters: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()) -> str | None:
    """An address on this server; parameters without a value are left out. None when a value is too long to be sent."""
    pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
    # The number 0 is a value, so it must not be mistaken for False.
    given = [(key, _plain(value)) for key, value in pairs if value is not None and value is not False and value != ""]
    if any(len(quote(value, safe="")) > MAX_VALUE for _, value in given):
        return None
    return f"{path}?{urlencode(given)}" if given else path


def _plain(value: Any) -> str:
    return "true" if value is True else str(value).encode("utf-8", "replace").decode()


def _for_api(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Filters of a page as those of the API, where a comma in a name would begin another one."""
    return {key: _exact(value) if key in NAMES else value for key, value in fields.items()}


def _exact(name: Any) -> Any:
    return name.replace(",", "\\,") if isinstance(name, str) else name


def _pairs(values: Iterable[str]) -> list[tuple[str, str]]:
    """Choices that are called as they are."""
    return [(value, value) for value in values]


def _tag_pairs(tags: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    return [(f"{key}:{value}", f"{key}: {value}") for key, values in tags.items() for value in values]


def _metric_pairs(metrics: Iterable[Metric]) -> list[tuple[str, str]]:
    return [(item.id, f"{item.label} ({item.unit})" if item.unit in ("usd", "aiu") else item.label) for item in metrics]


def _excerpt_text(value: Any, limit: int) -> str:
    """The start of a text, and how long it is when that is not all."""
    part = text.excerpt(value, limit)
    return part.text if part.size is None else f"{part.text}… ({numbers.size(part.size)} in all)"


class Pages:
    """Renders pages; holds nothing of a request."""

    def __init__(self, assets: Assets) -> None:
        self.assets = assets
        self._environment = Environment(
            loader=PackageLoader("vally_command_results.server"),
            autoescape=True,
            undefined=StrictUndefined,
            # An upgrade while the server runs must not mix its templates with the code of before.
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "name": text.name,
            "visible": text.visible,
            "line": text.one_line,
            "excerpt": text.excerpt,
            "duration": numbers.duration,
            "whole": numbers.whole,
            "short": numbers.short,
            "ratio": numbers.ratio,
            "score": numbers.score,
            "size": numbers.size,
            "costs": numbers.costs,
            "measured": numbers.measured,
            "change": numbers.change,
            "signed": numbers.signed,
            "for_api": _for_api,
            "pairs": _pairs,
            "tag_pairs": _tag_pairs,
            "metric_pairs": _metric_pairs,
            "excerpt_text": _excerpt_text,
        }
        self._environment.globals |= {
            "asset": assets.url,
            "link": link,
            "glyphs": GLYPHS,
            "words": WORDS,
            "bar": bar,
            "sparkline": sparkline,
        }

    def render(self, template: str, values: Mapping[str, Any]) -> bytes:
        """The page, encoded."""
        return self._environment.get_template(template).render(values).encode("utf-8", "replace")


@lru_cache(maxsize=1)
def pages() -> Pages:
    """The renderer; templates are read once."""
    return Pages(load_assets())
