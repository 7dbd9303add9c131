"""Two graders for vally, as an example of a package that somebody else publishes."""
