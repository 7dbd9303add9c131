"""Evaluate AI agents: the kernel of vally."""
