"""The sensor database: catalog, stream types, and the manager that reads sensors into logs."""
