"""The demo that comes with Nilometer, and what all demos share: clients of everything below."""
