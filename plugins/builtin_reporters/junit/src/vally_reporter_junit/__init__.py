"""Reporter plugin: a JUnit XML report."""
