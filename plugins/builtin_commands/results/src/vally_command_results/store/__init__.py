"""The store of results: tables, their versions, and opening one."""
