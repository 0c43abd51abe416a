"""Commands that `nilometer` has if this package is installed."""
