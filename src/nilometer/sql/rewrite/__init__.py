"""Trees to trees, before names are resolved: many ways to write a thing become one."""
