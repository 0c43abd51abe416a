"""SQL: what a user writes, read into typed expressions and plans."""

from nilometer.sql.check_sqlglot import check_sqlglot

check_sqlglot()
