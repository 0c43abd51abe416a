"""What /metrics tells, as families of Prometheus: each under a name, with a help and a type."""
