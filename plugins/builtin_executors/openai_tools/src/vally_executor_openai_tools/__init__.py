"""Executor plugin: a small agent with a shell and file tools over any OpenAI-compatible endpoint."""
