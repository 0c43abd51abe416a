"""A stream type for Nilometer: how busy this machine is."""
