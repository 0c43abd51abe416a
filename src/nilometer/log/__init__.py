"""The durable log of a stream: Arrow segments, one copy for any number of readers."""
