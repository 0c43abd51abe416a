"""Applications: clients of everything below."""
