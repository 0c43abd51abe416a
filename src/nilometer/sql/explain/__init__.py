"""Plans in words and as pictures."""
