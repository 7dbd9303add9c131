"""The site builds without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT


@pytest.mark.heavy
def test_the_site_builds(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(tmp_path / "site")]
    doctrees = ["-d", str(tmp_path / "doctrees")]
    built = subprocess.run([*argv, *doctrees], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "graders.html").is_file()
