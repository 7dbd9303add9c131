"""Judge for vally: Anthropic messages and compatible servers."""
