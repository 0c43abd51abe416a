"""The database's own statements: what they declare, and how they are parsed."""
