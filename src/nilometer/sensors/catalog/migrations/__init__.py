"""How a catalog of an older version becomes one of this version."""
