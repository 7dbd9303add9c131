"""Executor plugin: GitHub Copilot through its SDK.

Others that talk to Copilot may use `pool` (few processes for many sessions), `client` and `clients` (what a process
is made of, and `MOST_SESSIONS` of `config`), `runtime` (where it lies), `environment` and `provider` (login and
endpoint), `permissions` (answers to its requests), `native` and `mapping` (its events, and the unit of its costs),
`waiting` (the end of a turn) and `failures` (what it says of an error).
"""
