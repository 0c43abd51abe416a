"""What `make bench` measures: Nilometer beside Spark's own joins, on results that are checked."""
