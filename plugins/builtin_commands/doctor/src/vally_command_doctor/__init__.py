"""Command plugin: the state of an installation."""
