"""Grader plugin: grading by several judges."""
