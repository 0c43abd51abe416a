"""Runs many queries together: their plans are data, and a bucket runs all plans given to it.

Nothing here depends on Spark, which gives every bucket a task for each micro-batch.
"""
