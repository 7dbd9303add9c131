"""Specs of other tools, read by an eval provider."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vally.errors import VallyError

if TYPE_CHECKING:
    from vally.foreign import ForeignSpec
    from vally.host import PluginHost
    from vally.model.evalspec import Project
    from vally.records import EvalProviderSpec


class ForeignSpecs:
    """Asks one eval provider, which keeps files in a scratch directory until `close`."""

    def __init__(self, host: PluginHost, record: EvalProviderSpec, project: Project, params: Mapping[str, str]) -> None:
        self._host = host
        self._record = record
        self._project = project
        self._params = params
        self._provider: Any = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def load(self, path: Path) -> ForeignSpec | None:
        """The spec in a file; None for a file that the provider does not recognise. Raises `VallyError`."""
        if not self._is_named(path):
            return None
        from vally.foreign import ForeignSpec

        try:
            if self._provider is None:
                self._provider = self._host.create(self._record)
            if not self._provider.detect(path):
                return None
            found = asyncio.run(_settled(self._provider.load(path, self._context())))
        except VallyError:
            raise
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}", path) from error
        if not isinstance(found, ForeignSpec):
            raise self._failed(f"{type(found).__name__} is not a ForeignSpec", path)
        return found

    def _failed(self, reason: str, path: Path) -> VallyError:
        return VallyError(f"plugin '{self._record.name}': {reason}", where=str(path), code="eval-provider-failed")

    def _is_named(self, path: Path) -> bool:
        from vally.text.globs import compile_glob

        return any(compile_glob(glob, dotfiles=True).match(path.name, is_dir=False) for glob in self._record.patterns)

    def _context(self) -> Any:
        from vally.foreign import ProviderContext

        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="vally-specs-", ignore_cleanup_errors=True)
        return ProviderContext(
            params=self._params,
            project_dir=self._project.root,
            scratch_dir=Path(self._scratch.name),
            log=logging.getLogger("vally.specs"),
        )

    def close(self) -> None:
        """Remove the scratch directory; closing twice is fine."""
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            with contextlib.suppress(OSError):
                scratch.cleanup()


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
