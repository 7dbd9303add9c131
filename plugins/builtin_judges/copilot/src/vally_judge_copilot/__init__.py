"""Judge for vally: GitHub Copilot through its SDK."""
