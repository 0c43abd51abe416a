"""SQL's scalar functions over Arrow columns, with Spark's ANSI semantics, in one table."""
