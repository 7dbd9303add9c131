"""Grader plugin: checks by running a command or a grading program."""
