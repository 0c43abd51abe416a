"""The stream types that come with Nilometer, one per file."""
