"""Commands for vally: results in a store, an HTTP API over them and a dashboard."""
