"""Command for vally: a scripted model server."""
