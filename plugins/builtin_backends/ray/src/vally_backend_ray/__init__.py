"""Backend plugin: trials on a Ray cluster."""
