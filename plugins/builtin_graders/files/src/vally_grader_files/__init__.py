"""Grader plugin: checks on the files of the workspace."""
