"""Grader plugin: checks on the difference between the workspace before and after the run."""
