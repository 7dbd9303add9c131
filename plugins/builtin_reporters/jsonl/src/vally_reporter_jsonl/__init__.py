"""Reporter plugin: records on standard output, one JSON object per line."""
