"""Reporter plugin: progress and results on the terminal."""
