"""The HTTP server: API and dashboard over a store."""
