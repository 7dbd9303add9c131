"""Command plugin: recorded tool calls as canned answers."""
