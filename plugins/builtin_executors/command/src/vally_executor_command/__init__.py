"""Executor plugin: any command-line agent."""
