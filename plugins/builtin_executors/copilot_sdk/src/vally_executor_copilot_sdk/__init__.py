"""Executor plugin: GitHub Copilot through its SDK.

Others that talk to Copilot may use `pool` (few processes for many sessions), `client` and `clients` (what a process
is made of), `runtime` (where it lies) and `waiting` (the end of a turn).
"""
