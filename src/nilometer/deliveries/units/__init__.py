"""The delivery units that come with Nilometer."""
