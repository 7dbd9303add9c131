"""Grader plugin: checks on the text of the agent's answer and transcript."""
