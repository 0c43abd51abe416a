"""Rewrite trees before names are resolved: many ways to write something become one."""
