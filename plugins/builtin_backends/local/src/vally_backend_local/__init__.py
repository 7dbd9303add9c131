"""Backend plugin: trials on this machine, in a workspace of their own."""
