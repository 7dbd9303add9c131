"""What can be told of the settings of variants before any eval is known."""

from __future__ import annotations

from vally.spec.defaults import DEFAULTS, read_executor, read_provider
from vally.spec.diagnostics import Place
from vally.spec.environments import ENVIRONMENT, named_environment
from vally.spec.loading import Loading
from vally.spec.nodes import Node, ScalarNode
from vally.spec.scalars import is_null
from vally.spec.sections import Section, read_section
from vally.spec.settings import Setting, nested
from vally.spec.staged_files import check_files


def check_setting(loading: Loading, setting: Setting, place: Place) -> None:
    """Check keys, types, executor and provider; what lies deeper than a key is checked once it is merged."""
    if len(setting.steps) > 1:
        return
    tree = nested(None, setting.steps, setting.value, setting.at)
    if setting.key == "defaults":
        section = read_section(tree, DEFAULTS, place, loading.collector)
        if section is not None:
            _check_defaults(loading, section)
    else:
        _check_environment(loading, tree, place)


def _check_defaults(loading: Loading, section: Section) -> None:
    for key, read in (("executor", read_executor), ("judge_provider", read_provider)):
        node = section.get(key)
        if node is not None and not node.holes_inside:
            read(loading, node, section.place.key(key))


def _check_environment(loading: Loading, tree: Node, place: Place) -> None:
    if isinstance(tree, ScalarNode):
        if not tree.holes_inside and not is_null(tree):
            named_environment(loading, tree, place)
        return
    section = read_section(tree, ENVIRONMENT, place, loading.collector)
    if section is not None and "files" in section.values:
        check_files(section.values["files"], place.key("files"), loading.collector)
