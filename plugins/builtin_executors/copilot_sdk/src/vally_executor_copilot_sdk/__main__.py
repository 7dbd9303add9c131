"""`python -m vally_executor_copilot_sdk provision`."""

from __future__ import annotations

from vally_executor_copilot_sdk.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
