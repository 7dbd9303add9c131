"""Executor plugin: GitHub Copilot through its SDK."""
