"""The version of the kernel, kept as a literal so that reading it imports nothing."""

__version__ = "0.1.0"
