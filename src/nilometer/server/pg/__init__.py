"""PostgreSQL's protocol, so that psql, drivers and dashboards can ask the database."""
