"""Plugin hosts for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vally.host import PluginHost


def plugin_host(*objects: object, specifiers: Sequence[tuple[str, str]] = ()) -> PluginHost:
    """A host of records, modules or objects with hooks, and of (kind, specifier) pairs; nothing installed is found.

    Local paths of specifiers start from the current directory.
    """
    from vally.host import PluginHost

    return PluginHost.from_objects(*objects, specifiers=specifiers, bases=(Path.cwd(),))
