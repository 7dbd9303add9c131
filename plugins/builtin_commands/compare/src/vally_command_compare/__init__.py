"""Command for vally: compare the trials of two runs."""
