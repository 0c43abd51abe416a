"""Trees to plans: every name resolved against the catalog."""
