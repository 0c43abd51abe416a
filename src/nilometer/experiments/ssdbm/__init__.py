"""The figures of the SSDBM paper: BEW-join against FEW-join."""
