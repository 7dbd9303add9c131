"""Stored runs made by hand, and the program that looks at them."""

from run_fixtures import make, vally, write_run

__all__ = ["make", "vally", "write_run"]
