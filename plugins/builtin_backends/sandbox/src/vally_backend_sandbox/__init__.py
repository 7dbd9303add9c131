"""Backend plugin: trials on this machine, their processes confined by bubblewrap."""
