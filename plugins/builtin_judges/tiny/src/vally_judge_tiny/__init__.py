"""Judge plugin: a very small model on this machine, for demonstrations."""
