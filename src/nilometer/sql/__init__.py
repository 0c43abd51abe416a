"""SQL: what a user writes, read into typed expressions and plans."""

from nilometer.sql.parse.check_sqlglot import check_sqlglot

check_sqlglot()
