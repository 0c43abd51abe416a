"""`nilometer shell`: statements one after the other, from a terminal, a file or a pipe."""
