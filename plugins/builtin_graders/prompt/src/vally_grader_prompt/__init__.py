"""Grader plugin: grading by a model with a rubric."""
