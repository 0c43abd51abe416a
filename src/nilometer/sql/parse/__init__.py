"""From text to trees: Spark's SQL with the papers' windows, every word with its position."""
