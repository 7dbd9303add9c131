"""How a run proceeds: plan, trials, grading, scoring and the records it leaves."""
