"""`git` of an environment: a repository as the base of the workspace."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from vally.model.evalspec import GitSource
from vally.spec import paths
from vally.spec.diagnostics import Collector, Place
from vally.spec.loading import Loading, shown_path
from vally.spec.masking import PLACEHOLDER
from vally.spec.nodes import MappingNode, Node, ScalarNode
from vally.spec.sections import Key, Section, Table, read_section, wrong_value
from vally.spec.shapes import Boolean, Choice, ListOf, Text, any_of

_TYPES = ("worktree", "clone")
_TYPE = Key(Choice(_TYPES), "how the repository is taken", required=True)
_COMMON = {
    "ref": Key(Text(), "commit, branch or tag"),
    "history": Key(Choice(("ref", "all", "none")), "what of the history an agent can find", default="ref"),
}
WORKTREE = Table("git", {"type": _TYPE, "source": Key(Text(), "path inside a repository"), **_COMMON})
CLONE = Table(
    "git",
    {
        "type": _TYPE,
        "url": Key(Text(), "what to clone", required=True),
        "shallow": Key(Boolean(), "only the newest commit", default=False),
        "sparse": Key(ListOf(Text()), "directories of a sparse checkout"),
        **_COMMON,
    },
)
# Used only while the type is unknown, so that its absence is the one thing reported.
EITHER = Table(
    "git", {**WORKTREE.keys, "url": Key(Text()), "shallow": CLONE.keys["shallow"], "sparse": CLONE.keys["sparse"]}
)


def read_git_shape(node: Node, place: Place, collector: Collector) -> Section | None:
    """Check everything that does not depend on the file system."""
    section = read_section(node, _table(node), place, collector)
    if section is None or "type" not in section.values:
        return None
    url = section.written.get("url")
    if isinstance(url, ScalarNode) and _has_credentials(url):
        collector.add("secret-in-spec", url, place.key("url"), key=place.key("url").label)
        return None
    if section.get("history") == "all":
        collector.add("git-history-exposed", section.at("history"), place.key("history"))
    return None if section.is_broken(*section.keys) or ("url" in CLONE.keys and _lacks_url(section)) else section


def _table(node: Node) -> Table:
    kind = node.get("type") if isinstance(node, MappingNode) else None
    text = kind.text if isinstance(kind, ScalarNode) else ""
    return WORKTREE if text == "worktree" else CLONE if text == "clone" else EITHER


def _lacks_url(section: Section) -> bool:
    return section.get("type") == "clone" and "url" not in section.values


def _has_credentials(node: ScalarNode) -> bool:
    """Whether the text in the file, placeholders unfilled, holds a password, or a token in front of an http host.

    What placeholders stand for comes from elsewhere.
    """
    text = node.text if node.original is None else node.original
    try:
        # An escaped one is text.
        parts = urlsplit(PLACEHOLDER.sub(lambda found: found[0] if found["dollar"] else "", text))
    except ValueError:
        return False
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    if colon:
        return bool(password)
    return bool(user) and parts.scheme in ("http", "https")


def read_git(loading: Loading, node: Node, place: Place) -> tuple[GitSource, dict[str, Any]] | None:
    """The repository, and as records show it."""
    section = read_git_shape(node, place, loading.collector)
    if section is None:
        return None
    values: dict[str, Any] = {key: list(value) if key == "sparse" else value for key, value in section.values.items()}
    shown = dict(values)
    if section.get("type") == "worktree":
        source = section.written.get("source")
        at, where, path = section.at("source"), place, loading.source.base
        name = loading.display(path)
        if isinstance(source, ScalarNode):
            where, name = place.key("source"), section.get("source")
            path = loading.resolve(source, where)
        if paths.repository_root(path) is None or not paths.exists(path):
            loading.collector.add("git-source-not-found", at, where, path=name)
        values["source"], shown["source"] = path, shown_path(at, path)
    elif isinstance(url := section.written.get("url"), ScalarNode) and url.written is not None:
        shown["url"] = url.written
    if "sparse" in values:
        values["sparse"] = tuple(values["sparse"])
    return GitSource(**values), shown


def check_url(node: Node, url: str, place: Place, collector: Collector) -> bool:
    """Report a URL that is not http or https, or that holds credentials."""
    assert isinstance(node, ScalarNode)
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        wrong_value(node, place, collector, f"an {any_of(('http', 'https'))} URL")
        return False
    if _has_credentials(node):
        collector.add("secret-in-spec", node, place, key=place.label)
        return False
    return True
