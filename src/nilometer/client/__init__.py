"""Talk to a Nilometer server."""
