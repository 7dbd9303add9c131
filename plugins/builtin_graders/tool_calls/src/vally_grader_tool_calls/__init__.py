"""Grader plugin: checks on the tools and skills an agent used."""
