"""The figures of TR-010: service times of the W-join algorithms."""
