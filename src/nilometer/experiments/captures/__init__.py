"""The join algorithms on real captures: not a figure of the papers."""
