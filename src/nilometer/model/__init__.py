"""Time, windows, schemas and expressions: plain Python, no arrays, no engine."""
