"""What evals, trajectories, results and records are; nothing here reads files or runs anything."""
