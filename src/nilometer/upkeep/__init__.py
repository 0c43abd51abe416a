"""The folder of a database as files: its format, its identity, backups, restoring, checking.

Nothing here depends on Spark, and no query needs to run.
"""
