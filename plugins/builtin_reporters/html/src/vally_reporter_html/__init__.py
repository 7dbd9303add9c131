"""Reporter plugin: an HTML report in one file."""
