"""Plans as stages and operator specs, with columns by position."""
