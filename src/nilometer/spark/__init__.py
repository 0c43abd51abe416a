"""The only part that knows PySpark: how a stage runs on it, and what a user calls."""

from nilometer.extras import require_extras

require_extras("this", "spark")

from nilometer.spark.check_spark import check_spark

check_spark()
