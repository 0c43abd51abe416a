"""SQL's scalar functions over Arrow columns, with Spark's (ANSI) meaning: a row of a table each."""
