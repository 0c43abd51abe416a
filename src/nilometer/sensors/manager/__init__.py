"""The stream manager: reads the sensors that queries need, and appends to their logs."""
