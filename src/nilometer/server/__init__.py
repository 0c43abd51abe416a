"""The stream database as a server: HTTP, results to clients, a web console."""
