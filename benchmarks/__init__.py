"""What `make bench` measures: Nilometer and Spark's own joins, with verified results."""
