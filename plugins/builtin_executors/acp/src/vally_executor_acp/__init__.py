"""Executor plugin: any agent that speaks the Agent Client Protocol."""
