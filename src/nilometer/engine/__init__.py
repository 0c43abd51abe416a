"""Runs many queries together: their plans are data, and a bucket runs all that it was given.

Nothing here knows Spark, which gives every bucket a task for each micro-batch.
"""
