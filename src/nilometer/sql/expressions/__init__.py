"""Scalar expressions: trees, what they may call, and how they are compiled."""
