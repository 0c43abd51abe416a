"""The streams of the experiments."""
