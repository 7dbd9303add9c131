"""Questions to a store; the API and the pages ask the same ones, so their numbers agree."""
