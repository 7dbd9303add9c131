"""Grader plugin: limits on tokens, time, cost and other measured values."""
