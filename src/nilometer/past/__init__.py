"""Questions about what is stored: streams and results of queries as tables of the past."""
