"""The only part that knows PySpark: how a stage runs on it, and what a user calls."""

from nilometer.extras import require_extras

require_extras("this", "spark")

import pyspark.version

from nilometer.spark.supported import require_supported

require_supported(pyspark.version.__version__)
