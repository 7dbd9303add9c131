"""Command plugin: stored runs and their trials."""
