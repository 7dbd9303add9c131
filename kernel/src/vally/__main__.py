"""`python -m vally` is the console script."""

from __future__ import annotations

from vally.cli.main import main

if __name__ == "__main__":
    main()
