"""Executor plugin: a scripted agent for tests and examples."""
