"""What pytest leaves alone here: the projects that evals hand to agents, whose tests are the agents' to run."""

from __future__ import annotations

collect_ignore = ["quickstart/project", "tool_loop/project"]
