"""Reporter plugin: annotations and step summary of GitHub Actions."""
