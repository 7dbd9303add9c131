"""Command for vally: experiments, which are evals in variants."""
