"""SQL: what a user writes, read into typed expressions and plans."""
