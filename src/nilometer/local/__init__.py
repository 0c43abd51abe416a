"""Runs the plans of a query in this process, without Spark."""
