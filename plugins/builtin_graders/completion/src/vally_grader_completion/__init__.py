"""Grader plugin: check that the agent finished its work."""
