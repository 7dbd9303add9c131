"""Grading what was recorded, without running an agent."""
