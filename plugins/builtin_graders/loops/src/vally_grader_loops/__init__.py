"""Grader plugin: detection of an agent that repeats itself."""
