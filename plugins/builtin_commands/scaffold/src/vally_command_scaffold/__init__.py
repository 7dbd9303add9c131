"""Commands that start evals and plugins, keep them current, and help to write them."""
