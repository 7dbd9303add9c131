"""Reporter plugin: a Markdown report."""
