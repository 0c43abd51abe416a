"""Results of named queries for any number of clients, read from their logs alone."""
