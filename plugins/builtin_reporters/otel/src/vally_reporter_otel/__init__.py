"""Reporter plugin: OpenTelemetry spans of runs."""
