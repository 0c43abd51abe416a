"""The figure of the STEAM paper that measures joins."""
