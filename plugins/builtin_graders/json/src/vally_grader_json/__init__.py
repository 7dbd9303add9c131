"""Grader plugin: checks on JSON in the agent's answer or in a file."""
