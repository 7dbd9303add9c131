"""Sphinx configuration. Pages are Markdown (MyST); every warning is an error in CI."""

from __future__ import annotations

import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

project = "vally"
author = "The vally authors"
copyright = "The vally authors"
release = version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
# A heading is a target: reference/graders.md#file-exists
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"vally {release}"
html_copy_source = False
html_show_sourcelink = False
