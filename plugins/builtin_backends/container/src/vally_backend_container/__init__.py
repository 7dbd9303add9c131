"""Backend plugin: trials in containers of podman or docker."""
