"""What a stimulus may simulate: answers of MCP tools, and the user."""
